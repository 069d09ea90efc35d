package store

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// RunView is a list of runs that a user keeps under a name.
type RunView struct {
	ViewID string `json:"view_id"`
	Name   string `json:"name"`
	// Query is the page's address from its question mark on: status, search, template, range, tag, sort, columns, trend.
	Query  string `json:"query" doc:"Filters, order, columns and trend, as they stand in the address of the page Runs."`
	Shared bool   `json:"shared" doc:"Whether everybody sees it."`
	// OwnerID is empty of a shared view whose user is gone.
	OwnerID   string      `json:"owner_id" doc:"Whose it is; empty when that user is gone."`
	Owner     string      `json:"owner"`
	Version   int64       `json:"version"`
	UpdatedBy string      `json:"updated_by"`
	CreatedAt engine.Time `json:"created_at"`
	UpdatedAt engine.Time `json:"updated_at"`
}

// MaxRunViews is how many views a user keeps.
const MaxRunViews = 200

// The bounds of a view, in characters.
const (
	maxViewName  = 80
	maxViewQuery = 4000
)

// viewParameters are the parts of the page's address that a view keeps.
var viewParameters = []string{"status", "search", "template", "range", "tag", "sort", "columns", "trend", "figure"}

// CheckRunView refuses what no view can be.
func CheckRunView(v RunView) error {
	n := len([]rune(v.Name))
	if n == 0 || n > maxViewName || strings.TrimSpace(v.Name) != v.Name || CleanText(v.Name) != v.Name ||
		strings.ContainsFunc(v.Name, textsafe.IsControl) {
		return engine.InvalidField("name", "cannot be used", fmt.Sprintf(
			"choose 1 to %d characters that are seen, without a space at either end", maxViewName))
	}
	if err := engine.CheckName("name", v.Name); err != nil {
		return err
	}
	if len([]rune(v.Query)) > maxViewQuery {
		return engine.InvalidField("query", "is too long", fmt.Sprintf("at most %d characters", maxViewQuery))
	}
	parts, err := url.ParseQuery(v.Query)
	if err != nil || CleanText(v.Query) != v.Query {
		return engine.InvalidField("query", "is no query of an address", "write status=FAILED&sort=-p95_ms")
	}
	for part := range parts {
		if !slices.Contains(viewParameters, part) {
			return engine.InvalidField("query", fmt.Sprintf("has %q", textsafe.Shorten(textsafe.OneLine(part), 40)),
				"a view keeps "+strings.Join(viewParameters, ", "))
		}
	}
	return nil
}

// TooManyRunViews is the ErrConflict about a view more than a user may keep.
func TooManyRunViews() error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: fmt.Sprintf("You keep %d views, and no more are kept for one user.", MaxRunViews),
		Hint:    "Delete one first."}
}

// OwnerlessViewError is the ErrConflict about a shared view of a user that is gone, which somebody wants to keep for
// itself.
func OwnerlessViewError(name string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: fmt.Sprintf("The view %q belongs to nobody: nobody would see it.", name), Hint: "Delete it instead."}
}
