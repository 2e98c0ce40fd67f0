import pytest

from segdec.errors import ConfigError
from training.config import ExperimentConfig, changeable_settings
from training.experiment_file import load_experiment, save_experiment

MINIMAL = "[stages.segment]\nsteps = 3\n"


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(MINIMAL)
    return path


@pytest.mark.parametrize("flags", [["--input.white-level", "4095"], ["--input.white_level=4095"]])
def test_flags_accept_hyphens_and_underscores(experiment, flags):
    assert load_experiment(experiment, flags).input.white_level == 4095


def test_preset_sets_the_missing_fields(experiment):
    experiment.write_text(MINIMAL + "[network]\npreset = 'compact'\nfeature_width = 24\n")
    network = load_experiment(experiment, ["--network.feature-kernel", "3"]).network
    assert (network.feature_width, network.feature_kernel) == (24, 3)
    assert network.segmentation_widths[0] == (16, 16)


def test_effective_configuration_round_trips(experiment, tmp_path):
    config = load_experiment(experiment, ["--network.preset", "comind2021", "--data.splits", "splits.txt"])
    saved = tmp_path / "saved.toml"
    saved.write_text(save_experiment(config))
    assert load_experiment(saved) == config


def test_a_saved_experiment_leaves_the_number_of_classes_to_the_data_set(experiment, tmp_path):
    saved = tmp_path / "saved.toml"
    for flags in [], ["--network.num-classes", "3"]:
        config = load_experiment(experiment, flags)
        saved.write_text(save_experiment(config))
        network = load_experiment(saved).network
        assert ("num_classes" in network.model_fields_set) == bool(flags)
        assert network.num_classes == config.network.num_classes


def test_environment_variables_are_ignored(experiment, monkeypatch):
    monkeypatch.setenv("SEED", "99")
    assert load_experiment(experiment).seed == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bach_size = 2\n" + MINIMAL, "bach_size: unknown key. Did you mean 'batch_size'"),
        (MINIMAL + "stepz = 3\n", r"stages.segment.stepz: unknown key. Did you mean 'stages.segment.steps'"),
        (
            MINIMAL + "optimizer = 'adm'\n",
            "stages.segment.optimizer: Input should be 'sgd', 'adam' or 'adamw'",
        ),
        (
            MINIMAL + "optimizer = 'adamw'\nweight_decay_kind = 'l2'\n",
            "stages.segment: .*adamw with weight_decay_kind=l2; expected adam",
        ),
        ("batch_size = 0\n" + MINIMAL, "batch_size: Input should be greater than 0 .got 0."),
        ("name = '../up'\n" + MINIMAL, "name: String should match pattern"),
        ("name = 'NUL'\n" + MINIMAL, "'NUL' cannot name a run"),
        ("[network]\npreset = 'sed'\n" + MINIMAL, "unknown preset 'sed'; known: seed, jim2019"),
        ("[input]\nheight = 100\n" + MINIMAL, "input.height: Input should be a multiple of 8"),
        (
            "[input]\npolicy = 'letterbox'\nheight = 64\nwidth = 64\n[augmentation]\nsynthetic = 0.5\n"
            + MINIMAL,
            "with input.policy=letterbox would add defects to its padding; expected the policy resize",
        ),
        (
            "[augmentation]\nsynthetic = 0.5\nfeature_noise = 0.5\n" + MINIMAL,
            "feature_noise without cached features .*expected network.encoder with encoder_trainable",
        ),
        (
            "[network]\npreset = 'mobilenet'\n[augmentation]\nfeature_noise = 0.5\n" + MINIMAL,
            "feature_noise without .* synthetic defects; .*and augmentation.synthetic above 0",
        ),
        (
            "[network]\npreset = 'mobilenet'\nlinear_mask = true\n[augmentation]\nnoise = 1.0\n" + MINIMAL,
            "linear_mask without cached features; expected network.encoder with encoder_trainable=frozen",
        ),
        (
            "synchronized_batch_norm = true\n[network]\nnormalization = 'instance'\n" + MINIMAL,
            "network.normalization=instance; expected it with batch only",
        ),
        (MINIMAL + "balance = 'dynamic'\n", "segment.balance=dynamic, but this stage trains one loss"),
        ("", "no stage has steps"),
        (
            "[network]\npreset = 'mobilenet'\nheads = 0\nmemory = 100\n" + MINIMAL,
            "network.heads=0 and stages with steps; expected heads",
        ),
        ("a = [", "is not valid TOML"),
    ],
)
def test_errors_of_invalid_files(experiment, text, message):
    experiment.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_experiment(experiment)


@pytest.mark.parametrize(
    ("flag", "nearest"), [("--bath-size", "--batch-size"), ("--no-data.cash-mb", "--data.cache-mb")]
)
def test_unknown_flags_name_the_nearest(experiment, flag, nearest):
    with pytest.raises(ConfigError, match=f"{flag}: unknown flag. Did you mean '{nearest}'"):
        load_experiment(experiment, [flag, "1"])


def test_every_field_has_a_description():
    """Fields whose name does not say it all carry a description; sections are described by their class."""
    terse = {"flip_horizontal", "flip_vertical", "optimizer", "learning_rate", "kind"}
    undescribed = [name for name in leaves(ExperimentConfig) if name not in terse]
    assert undescribed == []


def leaves(model):
    """Names of the fields without description that are no sections."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and hasattr(kind, "model_fields"):
            yield from leaves(kind)
        elif not field.description:
            yield name


def test_settings_that_may_change_when_a_run_is_resumed():
    """Devices, places of the data, outputs, thresholds; a change of this list must be intended."""
    names = """
        name runs strategy devices cluster_timeout_s checkpoint_every checkpoint_minutes keep_checkpoints
        log_every tracking encoder_weights initial_weights data.layout data.root data.reviewed data.test_root
        data.splits data.supervision data.max_pixels data.allowed_leaks data.skip_broken data.cache_mb
        data.cache_folder data.disk_cache_mb data.checked_folder data.recheck data.drop_remainder
        data.decode_threads threshold.miss_cost threshold.defect_rate threshold.score threshold.review
        threshold.max_rejected threshold.missed_share threshold.refused_share threshold.confidence
    """
    assert changeable_settings() == set(names.split())
