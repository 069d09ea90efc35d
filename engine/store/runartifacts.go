package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
)

// Share is a link by which somebody who is not signed in sees the report of one run. Only the SHA-256 of its secret
// is stored.
type Share struct {
	ShareID   string `json:"share_id"`
	RunID     string `json:"run_id"`
	RunName   string `json:"run_name" doc:"As it was when the link was made."`
	CreatedBy string `json:"created_by"`
	// CreatedByID is the user by whose rights of now the link shows something.
	CreatedByID string      `json:"created_by_id,omitempty"`
	CreatedAt   engine.Time `json:"created_at"`
	ExpiresAt   engine.Time `json:"expires_at"`
	// UsedAt is zero for a link that nobody has opened.
	UsedAt   engine.Time `json:"used_at" doc:"When it was opened last; null when it never was."`
	UseCount int64       `json:"use_count"`
	// RunDeleted: the link says so to who opens it.
	RunDeleted bool `json:"run_deleted"`
}

// RunNote is what somebody wrote about a run.
type RunNote struct {
	RunID     string      `json:"run_id"`
	Text      string      `json:"text"`
	Version   int64       `json:"version" doc:"Rises with each save; 0 where nothing was written."`
	UpdatedBy string      `json:"updated_by"`
	UpdatedAt engine.Time `json:"updated_at"`
}

// Baseline is the run of a template that its other runs are held against.
type Baseline struct {
	TemplateID string      `json:"template_id"`
	RunID      string      `json:"run_id"`
	SetBy      string      `json:"set_by"`
	SetAt      engine.Time `json:"set_at"`
}

// The bounds of what is written about runs.
const (
	MaxNote = 10_000 // characters
	MaxTags = 50
)

// CheckNote refuses what no note can be, and returns it as it is kept.
func CheckNote(n RunNote) (RunNote, error) {
	n.Text = CleanText(n.Text)
	if length := utf8.RuneCountInString(n.Text); length > MaxNote {
		return n, engine.InvalidField("text", fmt.Sprintf("has %d characters", length),
			fmt.Sprintf("write at most %d", MaxNote))
	}
	return n, nil
}

// CheckTags refuses what cannot be the tags of a run.
func CheckTags(tags map[string]string) error {
	const longest = 200
	if len(tags) > MaxTags {
		return engine.InvalidField("tags", fmt.Sprintf("are %d", len(tags)), fmt.Sprintf("give at most %d", MaxTags))
	}
	for k, v := range tags {
		if k == "" || v == "" || utf8.RuneCountInString(k+v) > longest || !utf8.ValidString(k+v) ||
			strings.ContainsFunc(k+v, unicode.IsControl) {
			return engine.InvalidField("tags", fmt.Sprintf("has %.40q, which cannot be a tag", k+":"+v),
				fmt.Sprintf("give each a name and a value, %d characters together, without control characters", longest))
		}
	}
	return nil
}

// BaselineError is the ErrConflict about a run that cannot be the baseline of a template.
func BaselineError(why string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict, Message: "This run cannot be the baseline: " +
		why + ".",
		Hint: "Choose a completed run of the same template."}
}

// TagsChangedError is the ErrConflict about tags that somebody has set since they were read.
func TagsChangedError() error {
	return concurrentChangeError("The tags of the run were changed by somebody else, after you had opened them.",
		"are no longer the tags of the run")
}

// LiveRunTagsError is the ErrConflict about the tags of a live run.
func LiveRunTagsError() error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: "The tags of a run are changed before it starts or after it has ended.",
		Hint:    "Wait until it has ended."}
}
