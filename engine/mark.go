package engine

// Mark is what a user has noted at a moment of a run, such as "index created".
type Mark struct {
	MarkID    string `json:"mark_id"`
	RunID     string `json:"run_id"`
	At        Time   `json:"at"` // the moment that is marked
	Text      string `json:"text"`
	MadeBy    string `json:"made_by"`
	MadeAt    Time   `json:"made_at"`
	ChangedBy string `json:"changed_by"`
	ChangedAt Time   `json:"changed_at"`
}
