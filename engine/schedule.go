package engine

// Schedule starts runs of a template at the times of a cron expression.
type Schedule struct {
	ScheduleID   string `json:"schedule_id"`
	Name         string `json:"name"`
	TemplateID   string `json:"template_id"`
	TemplateName string `json:"template_name"`
	Cron         string `json:"cron" doc:"Five fields, or a name such as @daily."`
	TimeZone     string `json:"time_zone" doc:"A name of the IANA database."`
	Paused       bool   `json:"paused"`
	// NextDue is zero while the schedule is paused or suspended.
	NextDue Time `json:"next_due" doc:"When the next run is due; null while the schedule is paused or suspended."`
	// Confirmed are the ids of the production connections whose load the owner has confirmed.
	Confirmed []string `json:"-"`
	// ConfirmedNames are the names of those that there are.
	ConfirmedNames []string `json:"confirmed_production,omitempty" doc:"The production connections whose load the owner has confirmed, by name."`
	// TemplateVersion is the version of the template whose use was checked; 0 for any. A store saves no schedule of
	// another, and does not keep it.
	TemplateVersion int64  `json:"-"`
	OwnerID         string `json:"owner_id"`
	Owner           string `json:"owner" doc:"The user in whose name runs start: whoever saved the schedule last."`
	Suspended       string `json:"suspended_reason,omitempty" doc:"Why no run starts; whoever saves the schedule resumes it."`
	Version         int64  `json:"version"`
	UpdatedBy       string `json:"updated_by"`
	CreatedAt       Time   `json:"created_at"`
	UpdatedAt       Time   `json:"updated_at"`
	// Last is the newest start; nil before the first.
	Last *ScheduledStart `json:"last" doc:"The newest start; null before the first."`
}

// StartOutcome is what became of a start that was due.
type StartOutcome string

// The outcomes.
const (
	StartBegun   StartOutcome = "STARTING" // a server is starting the run
	StartDone    StartOutcome = "STARTED"
	StartSkipped StartOutcome = "SKIPPED" // a scheduled run of the template was still under way
	StartMissed  StartOutcome = "MISSED"  // no server started it in time
	StartFailed  StartOutcome = "FAILED"  // the run was refused
)

// ScheduledStart is a start that was due, and what became of it.
type ScheduledStart struct {
	ScheduleID string       `json:"schedule_id"`
	DueAt      Time         `json:"due_at" doc:"When it was due; of several that were missed, the first."`
	Outcome    StartOutcome `json:"outcome"`
	RunID      string       `json:"run_id,omitempty"`
	MatrixID   string       `json:"matrix_id,omitempty"`
	// Missed is how many starts in a row were missed.
	Missed  int    `json:"missed,omitempty" doc:"How many starts were missed."`
	Reason  string `json:"reason,omitempty" doc:"Why no run started."`
	NotedAt Time   `json:"noted_at"`
}
