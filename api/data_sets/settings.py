"""Settings of data sets."""

from pydantic import PositiveFloat

from api.inspecting.settings import InspectionSettings
from api.record.settings import Gigabytes


class DataSetSettings(InspectionSettings):
    """Settings of data sets."""

    import_gb: Gigabytes = 20.0
    """most gigabytes of an archive for a data set, and of its files after unpacking"""
    import_minutes: PositiveFloat = 60.0
    """minutes that reading an archive may take"""
    import_memory_gb: Gigabytes = 6.0
    """gigabytes of address space for reading an archive, in a process of its own"""
