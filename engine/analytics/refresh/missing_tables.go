package refresh

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// missingRelation is what Postgres says of a table that is not there.
var missingRelation = regexp.MustCompile(`^relation "(?:tables\.)?(.+)" does not exist$`)

// missingRelations are the names of the relations that an error says are not there.
func missingRelations(err error) (names []string) {
	var e *engine.Error
	if !errors.As(err, &e) {
		return nil
	}
	for _, f := range e.Fields {
		if m := missingRelation.FindStringSubmatch(f.Message); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}

// missingTable is the derived table that an error says is not there, nil when it says so of none.
func missingTable(err error, tables []Table) *Table {
	for _, name := range missingRelations(err) {
		for i, t := range tables {
			if t.Name == name || strings.ToLower(t.Name) == name {
				return &tables[i]
			}
		}
	}
	return nil
}

// How long who reads a table waits for its first refresh: the bundled ones are made in the first seconds of a server,
// which says in the first of them that it refreshes. lookMade is how often they look.
const (
	buildTimeout      = 10 * time.Second
	workerTimeout     = 2 * time.Second
	buildPollInterval = 200 * time.Millisecond
)

// AwaitBuilt calls ask, and retries while ask reads a derived table that is still being built. It stops at the time
// limit or when ctx ends, and returns the last error.
func AwaitBuilt(ctx context.Context, state func(context.Context) (State, error), ask func() error) error {
	made := ""
	for waited := time.Duration(0); ; waited += buildPollInterval {
		err := ask()
		if len(missingRelations(err)) == 0 {
			return err
		}
		s, failed := state(ctx)
		if failed != nil {
			return err
		}
		switch t := missingTable(err, s.Tables); {
		case t != nil && !t.AsOf.IsZero() && t.Name != made:
			made = t.Name // between the question and the look: it is asked once more, however long it has waited
		case waited >= buildWait(t, s):
			return ExplainMissing(err, s)
		}
		select {
		case <-ctx.Done():
			return ExplainMissing(err, s)
		case <-time.After(buildPollInterval):
		}
	}
}

// buildWait is how long it is worth waiting for a derived table that is being made; 0 when it is not being made, or
// waiting is of no use.
func buildWait(t *Table, s State) time.Duration {
	switch {
	case t == nil || !t.AsOf.IsZero():
		return 0
	case t.Status != Active || t.Error != "":
		return 0
	case !slices.ContainsFunc(s.Workers, func(w Worker) bool { return slices.Contains(w.Kinds, SQL) }):
		return workerTimeout
	}
	return buildTimeout
}

// ExplainMissing words an error about a query or a definition that reads a derived table which has not been refreshed
// yet: the database knows of no such table then. Other errors stay as they are.
func ExplainMissing(err error, s State) error {
	t := missingTable(err, s.Tables)
	if t == nil || !t.AsOf.IsZero() {
		return err
	}
	out := &engine.Error{Code: engine.CodeUnavailable, Cause: err,
		Message: fmt.Sprintf("The table %q has not been refreshed yet: it has no columns until then.", t.Name),
		Hint:    waitReason(*t, s)}
	switch nobody := MissingWorkers(s); {
	case t.Status != Active:
		out.Code = engine.CodeConflict
		out.Hint = fmt.Sprintf("It is %s: resume it, or mend what its page says.", t.Status)
	case t.Error != "":
		out.Hint = "Its first refresh failed, and is tried again: " + t.Error
	case nobody != "":
		out.Hint = nobody
	}
	return out
}

// waitReason says what the first refresh of a table waits for.
func waitReason(t Table, s State) string {
	if i := slices.IndexFunc(s.Claims, func(c Claim) bool { return c.Table == t.Name }); i >= 0 {
		return fmt.Sprintf("Its first refresh has been under way for %v. Try again when it has ended.",
			max(s.Now.Sub(s.Claims[i].ClaimedAt.Time), 0).Round(time.Second))
	}
	if t.NextDue.After(s.Now.Time) {
		return fmt.Sprintf("Its first refresh is due in %v. Refresh it now, or try again then.",
			t.NextDue.Sub(s.Now.Time).Round(time.Second))
	}
	waits := ""
	for _, w := range s.Workers {
		switch {
		case !slices.Contains(w.Kinds, SQL):
		case w.Waits == "":
			return "Its first refresh is due. Try again in a moment."
		default:
			waits = w.Waits
		}
	}
	return fmt.Sprintf("Its first refresh is due, and waits: %s. Try again then.", waits)
}
