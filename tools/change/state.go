package change

// State is where a change set stands. The values are stored in the event log and sent to editors.
type State string

// The states of a change set, in the order in which it passes them; the last three are final.
const (
	Proposed State = "proposed" // shown, and not decided
	Writing  State = "writing"  // decided; stored before the first file is written, so that the next start recovers after a crash
	Applied  State = "applied"
	Rejected State = "rejected" // by a person or by a rule; nothing was written
	Failed   State = "failed"   // nothing was written, because of an error and not of a decision
)
