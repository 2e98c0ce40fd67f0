import numpy as np
import pytest

from segdec.network.fourier import Transforms, kernel_spectra, transforms

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize(("kernel", "tile"), [(1, 8), (3, 8), (5, 16), (9, 24), (15, 32), (31, 64)])
def test_tile_is_about_twice_the_kernel_and_keeps_the_rest(kernel, tile):
    by = transforms(kernel)
    assert by.tile == tile
    assert by.kept == tile - kernel + 1


def test_matrices_are_the_real_fourier_transform_of_a_tile():
    by, tile = Transforms(tile=8, kernel=3), RANDOM.normal(size=(8, 8))
    rows = (by.to_half @ tile).reshape(5, 16)  # [F, part · T]
    spectrum = np.einsum("rx,fx->fr", by.to_whole, rows).reshape(5, 8, 2)
    expected = np.fft.rfft2(tile, axes=(1, 0))  # [F, T]
    np.testing.assert_allclose(spectrum[..., 0], expected.real, atol=1e-5)
    np.testing.assert_allclose(spectrum[..., 1], expected.imag, atol=1e-5)
    factor = 0.3 - 0.7j
    found = [np.einsum("sx,fx->fs", matrix, spectrum.reshape(5, 16)) for matrix in by.from_whole]
    rows = (factor.real * found[0] + factor.imag * found[1]).reshape(10, 6)
    back = np.fft.irfft2(factor * np.fft.rfft2(tile, axes=(1, 0)), axes=(1, 0))
    np.testing.assert_allclose(by.from_half @ rows, back[:6, :6], atol=1e-6)


@pytest.mark.parametrize(("width", "groups"), [(4, 1), (128, 2), (100, 1)])
def test_spectra_of_kernels_are_conjugate_and_in_groups_of_channels(width, groups):
    kernel = RANDOM.normal(size=(3, 3, 2, width)).astype(np.float32)
    found = kernel_spectra(kernel)
    padded = np.zeros((8, 8, 2, width))
    padded[:3, :3] = kernel
    expected = np.conj(np.fft.rfft2(padded, axes=(1, 0))).reshape(40, 2, width)
    assert found.dtype == np.float32
    assert found.shape == (groups, 2, 40, 2, width // groups)
    assert found.ctypes.data % 64 == 0
    found = np.concatenate(list(found), axis=-1)
    np.testing.assert_allclose(found[0], expected.real, atol=1e-5)
    np.testing.assert_allclose(found[1], expected.imag, atol=1e-5)
