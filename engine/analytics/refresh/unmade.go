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

// noRelation is what Postgres says of a table that is not there.
var noRelation = regexp.MustCompile(`^relation "(?:tables\.)?(.+)" does not exist$`)

// absent are the names of the relations that an error says are not there.
func absent(err error) (names []string) {
	var e *engine.Error
	if !errors.As(err, &e) {
		return nil
	}
	for _, f := range e.Fields {
		if m := noRelation.FindStringSubmatch(f.Message); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}

// named is the derived table that an error says is not there, nil when it says so of none.
func named(err error, tables []Table) *Table {
	for _, name := range absent(err) {
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
	waitMade   = 10 * time.Second
	waitWorker = 2 * time.Second
	lookMade   = 200 * time.Millisecond
)

// AwaitMade asks, and asks again while what is asked reads a derived table that is being made, until that has taken too
// long or ctx ends. The error is that of the last time, in the words of Unmade.
func AwaitMade(ctx context.Context, state func(context.Context) (State, error), ask func() error) error {
	made := ""
	for waited := time.Duration(0); ; waited += lookMade {
		err := ask()
		if len(absent(err)) == 0 {
			return err
		}
		s, failed := state(ctx)
		if failed != nil {
			return err
		}
		switch t := named(err, s.Tables); {
		case t != nil && !t.AsOf.IsZero() && t.Name != made:
			made = t.Name // between the question and the look: it is asked once more, however long it has waited
		case waited >= madeWithin(t, s):
			return Unmade(err, s)
		}
		select {
		case <-ctx.Done():
			return Unmade(err, s)
		case <-time.After(lookMade):
		}
	}
}

// madeWithin is how long it is worth waiting for a derived table that is being made; 0 when it is not being made, or
// waiting is of no use.
func madeWithin(t *Table, s State) time.Duration {
	switch {
	case t == nil || !t.AsOf.IsZero():
		return 0
	case t.Status != Active || t.Error != "":
		return 0
	case !slices.ContainsFunc(s.Workers, func(w Worker) bool { return slices.Contains(w.Kinds, SQL) }):
		return waitWorker
	}
	return waitMade
}

// Unmade words an error about a query or a definition that reads a derived table which has not been refreshed yet: the
// database knows of no such table then. Other errors stay as they are.
func Unmade(err error, s State) error {
	t := named(err, s.Tables)
	if t == nil || !t.AsOf.IsZero() {
		return err
	}
	out := &engine.Error{Code: engine.CodeUnavailable, Cause: err,
		Message: fmt.Sprintf("The table %q has not been refreshed yet: it has no columns until then.", t.Name),
		Hint:    awaited(*t, s)}
	switch nobody := Nobody(s); {
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

// awaited says what the first refresh of a table waits for.
func awaited(t Table, s State) string {
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
