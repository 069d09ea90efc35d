package snowflake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/target"
)

// Conformance is what an account was asked about what Loadstone assumes of it. It has no secrets, names or times of the
// account, so that two of them can be compared line by line.
type Conformance struct {
	// Account tells a real one from a stand-in: snowflake, simulated or emulated.
	Account     string       `json:"account"`
	Assumptions []Assumption `json:"assumptions"`
}

// Assumption is one thing that Loadstone assumes.
type Assumption struct {
	ID       string `json:"id"`
	Sentence string `json:"assumption"`
	// Outcome is held, not held, or not checked: something before it failed, or the account does not have it.
	Outcome string `json:"outcome"`
	// Found is what the account answered instead, or besides.
	Found string `json:"found,omitempty"`
}

// The outcomes.
const (
	Held       = "held"
	NotHeld    = "not held"
	NotChecked = "not checked"
)

// JSON is the file that users hand on.
func (c Conformance) JSON() []byte {
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	w.SetIndent("", "  ")
	_ = w.Encode(c) // texts are always written
	return b.Bytes()
}

// Summary counts the outcomes.
func (c Conformance) Summary() string {
	counts := map[string]int{}
	for _, a := range c.Assumptions {
		counts[a.Outcome]++
	}
	return fmt.Sprintf("%d assumptions held, %d did not, %d were not checked.", counts[Held], counts[NotHeld],
		counts[NotChecked])
}

// checkPrefix begins the names of what a check makes, and drops again.
const checkPrefix = "LOADSTONE_CHECK_"

// checker asks one account.
type checker struct {
	db  target.Database
	out *Conformance
	// missing are the ids of assumptions that do not hold, on which others rest.
	missing map[string]bool
}

// probe is how an assumption is asked: found is what was found, held whether it is as assumed.
type probe struct {
	id, sentence string
	after        string // the id of another without which there is nothing to ask
	ask          func(ctx context.Context, c *checker) (held bool, found string, err error)
}

// CheckConformance asks an account, in the schema of its connection, whether what Loadstone assumes of it holds. It
// makes tables with names of its own and drops them. An error is of an account that cannot be asked at all.
func CheckConformance(ctx context.Context, db target.Database) (Conformance, error) {
	c := &checker{db: db, out: &Conformance{Account: "snowflake"}, missing: map[string]bool{}}
	info, err := db.Check(ctx)
	if err != nil {
		return *c.out, err
	}
	switch {
	case info.Emulated:
		c.out.Account = "emulated"
	case info.Simulated:
		c.out.Account = "simulated"
	}
	defer c.clean(context.WithoutCancel(ctx))
	c.clean(ctx)
	for _, p := range probes {
		a := Assumption{ID: p.id, Sentence: p.sentence, Outcome: NotChecked}
		if p.after == "" || !c.missing[p.after] {
			asking, cancel := context.WithTimeout(ctx, probeTimeout)
			held, found, err := p.ask(asking, c)
			cancel()
			if ctx.Err() != nil {
				return *c.out, ctx.Err()
			}
			if a.Found = found; err != nil {
				a.Found = c.said(err)
			}
			a.Outcome = NotHeld
			if held && err == nil {
				a.Outcome = Held
			}
		}
		c.missing[p.id] = a.Outcome != Held
		c.out.Assumptions = append(c.out.Assumptions, a)
	}
	return *c.out, nil
}

// probeTimeout bounds one assumption.
const probeTimeout = 2 * time.Minute

// said is an error by its number, and its text without what is of this account.
func (c *checker) said(err error) string {
	e := c.db.Classify(err)
	return strings.TrimSpace(e.Code + " " + ownNames.ReplaceAllString(strings.Join(strings.Fields(e.Message), " "), "…"))
}

// ownNames are texts in errors that are of one account: names in quotes, and ids.
var ownNames = regexp.MustCompile(`'[^']*'|"[^"]*"|[0-9a-f]{8}-[0-9a-f-]{27}`)

var checkTables = []string{"STANDARD", "OTHER", "HYBRID", "HYBRID2", "INTERACTIVE", "ALTERED", "SHORT"}

func (c *checker) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, name := range checkTables {
		_ = c.db.Exec(ctx, "DROP TABLE IF EXISTS "+checkPrefix+name) // what is left is told by the next check
	}
}

// one is the only value of a query, as text.
func (c *checker) one(ctx context.Context, sql string, args ...any) (string, error) {
	rs, err := c.db.Query(ctx, sql, args...)
	if err != nil {
		return "", err
	}
	if len(rs.Rows) != 1 || len(rs.Rows[0]) == 0 {
		return fmt.Sprintf("%d rows", len(rs.Rows)), nil
	}
	return fmt.Sprint(rs.Rows[0][0]), nil
}

// value asks for one value, which is assumed to be want.
func value(want, sql string, args ...any) func(context.Context, *checker) (bool, string, error) {
	return func(ctx context.Context, c *checker) (bool, string, error) {
		got, err := c.one(ctx, sql, args...)
		if got == want {
			return true, "", err
		}
		return false, got, err
	}
}

// executed asks whether statements are executed.
func executed(sql ...string) func(context.Context, *checker) (bool, string, error) {
	return func(ctx context.Context, c *checker) (bool, string, error) {
		return true, "", c.db.Exec(ctx, sql...)
	}
}

// refused asks whether a statement is refused, with one of these numbers where any are given. What is found is the
// number.
func refused(sql string, codes ...string) func(context.Context, *checker) (bool, string, error) {
	return func(ctx context.Context, c *checker) (bool, string, error) {
		err := c.db.Exec(ctx, sql)
		if err == nil {
			return false, "it was executed", nil
		}
		return len(codes) == 0 || slices.Contains(codes, c.db.Classify(err).Code), c.said(err), nil
	}
}

// listed asks whether a statement lists columns of these names.
func listed(sql string, names ...string) func(context.Context, *checker) (bool, string, error) {
	return func(ctx context.Context, c *checker) (bool, string, error) {
		rs, err := c.db.Query(ctx, sql)
		if err != nil {
			return false, "", err
		}
		var lacks []string
		for _, name := range names {
			if !slices.ContainsFunc(rs.Columns, func(have string) bool { return strings.EqualFold(have, name) }) {
				lacks = append(lacks, name)
			}
		}
		if len(lacks) > 0 {
			return false, "it has no column " + strings.Join(lacks, ", "), nil
		}
		return true, "", nil
	}
}
