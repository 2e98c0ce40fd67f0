// What the service and the worker write about trainings: what happened, and why.

import { personText } from "./person_text.js";
import { sentence, translateSentences } from "./sentence.js";

const EVENTS = [
  sentence("Ordered by {who}."),
  sentence("Cancelled by {who}."),
  sentence("Queued again by {who}."),
  sentence("{who} cancels the job."),
  sentence("{who} ends the training with the best weights so far."),
  sentence("The worker {worker} has the job."),
  sentence("The workers {workers} have the job."),
  sentence("The job waits for a worker and continues from its last checkpoint."),
  sentence("The job waits for a worker and starts again."),
  sentence("Its checkpoint is of version {version}, so that the training starts again."),
  sentence("Later metrics and output are not stored: there are too many."),
  sentence("The job is done."),
  sentence("The job is failed."),
  sentence("The job is cancelled."),
];

const REASONS = [
  sentence("Nothing was heard of the worker {worker} for {seconds} s."),
  sentence("{attempts} attempts in a row ended without a new checkpoint."),
  sentence("The last one:"),
  sentence("A person has cancelled it."),
  sentence("A person ended the training with the best weights so far."),
  sentence("The worker stopped."),
  sentence("The service rejected a request of the worker:"),
  sentence("The disk of the worker cannot be used:"),
  sentence("The training exited with code {code}."),
  sentence("The training was killed by {signal}."),
  sentence("The training did not stop in time and was killed by {signal}."),
  sentence("Its last line:"),
  sentence("Another worker of the group stopped."),
  sentence("The worker {worker}:"),
];

const SENTENCES = [...EVENTS, ...REASONS];

/** What was written about a training, in the language of the page. */
export function jobText(text) {
  return translateSentences(text, SENTENCES, { who: personText });
}
