"""What the service has only if it keeps a record. It needs the group `record`."""

import asyncio
from functools import partial

from api.data_sets.data_set_store import DataSetStore
from api.data_sets.photograph_leases import LeaseRequests
from api.data_sets.proposal_start import ProposalStarter
from api.data_sets.unanswered_archives import UnansweredArchives
from api.delivery.receivers import Receivers
from api.http.components import Components
from api.inspecting.service import InspectionService
from api.jobs.runner import JobRunner
from api.labelling.open_photographs import OpenPhotographs
from api.labelling.sam_model import SamModel
from api.labelling.sam_segmenter import SamSegmenter
from api.line.line_status import LineMonitor
from api.metrics import Metrics
from api.record.current_settings import CurrentSettings
from api.record.outbox import Outbox
from api.record.record import Record
from api.record.record_metrics import RecordMetrics
from api.record.recording import Recording, open_picture_store
from api.record.settings import RecordSettings
from api.record.shifts import ShiftPlan
from api.record.storage.retention import RetentionRules
from api.reports.scheduled_reports import ReportSchedule, ScheduledReports
from api.settings import Settings
from api.training.jobs import check_no_training
from api.training.proposals_after_training import ProposalsAfterTraining
from api.training.training_store import TrainingStore


class RecordFeatures:
    """The record with the features that need it: line, reports, data sets, labelling, training.

    Args:
        settings: Settings of the start.
        metrics: Metrics of the service.
        receivers: Get the events of the record.

    Attributes:
        reports: Makes the reports at the end of periods; None: none are wanted.

    Raises:
        MissingExtraError: If the driver of the database is not installed.
        ConfigError: If the record's database or picture store cannot be used.
    """

    def __init__(self, settings: Settings, metrics: Metrics, receivers: Receivers) -> None:
        self._settings, self._receivers = settings, receivers
        self.record = Record(
            settings.record_database,
            settings.record_folder,
            RetentionRules.from_settings(settings),
            settings.retry_after_s,
            RecordMetrics(metrics),
            Outbox(tuple(receivers.sinks), settings.public_url),
            open_picture_store(settings.record_pictures),
        )
        self.line = LineMonitor(self.record, ShiftPlan.from_settings(settings))
        self.settings = CurrentSettings(settings, self.record, self._apply)
        self.recording = Recording(settings.record, self.record, self.settings)
        self.reports: ScheduledReports | None = None
        if settings.report_schedule:
            schedule = ReportSchedule.from_settings(settings)
            self.reports = ScheduledReports(self.record, schedule, lambda: self.line.plan)
        self.data_sets = DataSetStore(settings, self.record, check_no_training)
        self.jobs = JobRunner(self.record, settings.record_folder / "jobs", settings.retry_after_s)
        self.unanswered = UnansweredArchives(
            settings.record_folder / "unanswered_imports", round(settings.import_gb * 1e9)
        )
        self.training = TrainingStore(settings, self.record)
        self.open_photographs = OpenPhotographs()
        self._after_training: ProposalsAfterTraining | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def _apply(self, changed: RecordSettings) -> None:
        self.record.set_rules(RetentionRules.from_settings(changed))
        self.line.plan = ShiftPlan.from_settings(changed)
        self._receivers.set_zone(self.line.plan.zone)

    async def load_sam(self) -> None:
        """Loads what segments defects from clicks, if it is not the service's own code.

        Raises:
            SegdecError: If it cannot be used.
        """
        if self._settings.sam is not None:
            model = await asyncio.to_thread(SamModel, self._settings.sam, self._settings.image_threads)
            self.open_photographs.make_segmenter = partial(SamSegmenter, model)

    def add_to(self, components: Components, inspection: InspectionService) -> None:
        """Adds what the routes use."""
        self.line.find_limits = inspection.models.find_limits
        proposals = ProposalStarter(self.data_sets, self.jobs, inspection.background_inspector)
        components.add(
            self.record,
            self.line,
            self.settings,
            self.data_sets,
            self.jobs,
            self.unanswered,
            self.training,
            self.open_photographs,
            LeaseRequests(),
            proposals,
        )
        self._after_training = ProposalsAfterTraining(inspection, self.training, proposals)

    def start(self) -> None:
        """Starts what runs beside the requests."""
        running = (self._after_training, self.reports)
        works = [
            self.settings.refresh_regularly(),
            self.jobs.end_abandoned(),
            self.unanswered.delete_old_regularly(),
            *(one.run() for one in running if one is not None),
        ]
        self._tasks = [asyncio.create_task(work) for work in works]

    async def close(self) -> None:
        """Ends what runs beside the requests."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.jobs.close()
