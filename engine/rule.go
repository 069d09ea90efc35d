package engine

// Rule watches a run while it goes on. When is a SELECT without INTO over the streams of the product, of this run
// only. The path of URL is a secret, in clear only between parsing and the store, which keeps it in URLSealed.
type Rule struct {
	Name      string     `json:"name"`
	When      string     `json:"when"`
	Do        RuleAction `json:"do"`
	URL       string     `json:"url,omitempty"`
	URLSealed string     `json:"url_sealed,omitempty"`
}

// RuleAction is what follows from a row: the run stops as by a guardrail, or rows are posted to an address.
type RuleAction string

// RuleStatus is RUNNING until the run is over, which ENDED it, unless it has stopped the run (TRIGGERED) or FAILED; so
// has one whose server was gone before the run was over.
type RuleStatus string

// The actions and the statuses.
const (
	RuleStop      RuleAction = "stop"
	RuleWebhook   RuleAction = "webhook"
	RuleRunning   RuleStatus = "RUNNING"
	RuleTriggered RuleStatus = "TRIGGERED"
	RuleEnded     RuleStatus = "ENDED"
	RuleFailed    RuleStatus = "FAILED"
)

// RuleState is a rule of a run with what it gave.
type RuleState struct {
	Name    string     `json:"name"`
	Do      RuleAction `json:"do"`
	Status  RuleStatus `json:"status"`
	In      int64      `json:"rows_in" doc:"Rows that it has read."`
	Out     int64      `json:"rows_out" doc:"Rows that it gave."`
	At      Time       `json:"last_at" doc:"When it gave the last one; null before."`
	Row     string     `json:"last_row" doc:"The last one, in words."`
	Failure string     `json:"failure"`
}
