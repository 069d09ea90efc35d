package snowflake

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
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
	// Outcome is held, not held, or not checked: something before it failed, the account was not able to answer, or it
	// does not have it.
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
	return fmt.Sprintf("%d assumptions held, %d did not, %d were not checked.", c.Count(Held), c.Count(NotHeld),
		c.Count(NotChecked))
}

// Count is how many assumptions have an outcome.
func (c Conformance) Count(outcome string) (n int) {
	for _, a := range c.Assumptions {
		if a.Outcome == outcome {
			n++
		}
	}
	return n
}

// CheckPrefix begins the names of what checks make, and drop again. The rest of a name is of one check alone: others may
// check the account at the same time.
const CheckPrefix = "LOADSTONE_CHECK_"

// Checker asks one account what Loadstone assumes of it.
type Checker struct {
	db target.Database
	// prefix is CheckPrefix, and what tells this check from others.
	prefix string
	hider  hider
	out    Conformance
	// missing are the ids of assumptions that do not hold, on which others rest.
	missing map[string]bool
	// made are the tables that the check has made, or may have.
	made []string
}

// probe is how an assumption is asked: found is what was found, held whether it is as assumed.
type probe struct {
	id, sentence string
	after        string // the id of another without which there is nothing to ask
	ask          func(ctx context.Context, c *Checker) (held bool, found string, err error)
}

// UncheckedError is why an assumption could not be asked about.
type UncheckedError struct{ Why string }

func (e *UncheckedError) Error() string { return e.Why }

// NewChecker begins the check of an account, which makes tables with names of its own in the schema of the connection.
// An error is of an account that cannot be asked at all.
func NewChecker(ctx context.Context, db target.Database) (*Checker, error) {
	c := &Checker{db: db, out: Conformance{Account: "snowflake", Assumptions: []Assumption{}}, missing: map[string]bool{}}
	info, err := db.Check(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Emulated:
		c.out.Account = "emulated"
	case info.Simulated:
		c.out.Account = "simulated"
	}
	var own [4]byte
	_, _ = rand.Read(own[:]) // never fails
	c.prefix = CheckPrefix + strings.ToUpper(hex.EncodeToString(own[:])) + "_"
	c.hider = newHider(c.accountNames(ctx), c.prefix)
	return c, nil
}

// accountNames are the names of this account that its answers may have.
func (c *Checker) accountNames(ctx context.Context) (names []string) {
	if d, ok := c.db.(*database); ok {
		s := d.settings
		names = append(names, s.User, s.Account, s.Host, s.Database, s.Schema, s.Warehouse, s.Role)
	}
	for _, of := range []string{"USER", "ROLE", "WAREHOUSE", "DATABASE", "SCHEMA", "ACCOUNT", "ACCOUNT_NAME",
		"ORGANIZATION_NAME"} {
		if name, err := c.one(ctx, "SELECT CURRENT_"+of+"()"); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// Hide is a sentence without what is of this account alone.
func (c *Checker) Hide(sentence string) string { return c.hider.text(sentence) }

// Name is the name of something that the check makes.
func (c *Checker) Name(of string) string { return c.prefix + of }

// Table is the name of a table that the check makes, and drops at its end.
func (c *Checker) Table(of string) string {
	name := c.Name(of)
	if !slices.Contains(c.made, name) {
		c.made = append(c.made, name)
	}
	return name
}

// Probe asks, statement by statement, what can be asked without a run. An error is of a check that was given up.
func (c *Checker) Probe(ctx context.Context) error {
	for _, p := range probes {
		if err := c.Ask(ctx, Assumption{ID: p.id, Sentence: p.sentence}, p.after, probeTimeout,
			func(ctx context.Context) (bool, string, error) { return p.ask(ctx, c) }); err != nil {
			return err
		}
	}
	return nil
}

// probeTimeout bounds one assumption.
const probeTimeout = 2 * time.Minute

// Ask asks for one assumption within a time, unless it rests on another that does not hold. An error is of a check that
// was given up.
func (c *Checker) Ask(ctx context.Context, a Assumption, after string, limit time.Duration,
	ask func(context.Context) (held bool, found string, err error)) error {
	a.Outcome = NotChecked
	if after == "" || !c.missing[after] {
		asking, cancel := context.WithTimeout(ctx, limit)
		held, found, err := ask(asking)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		a.Outcome, a.Found = c.judge(held, found, err)
	}
	c.Add(a)
	return nil
}

// Add notes an assumption with its outcome.
func (c *Checker) Add(a Assumption) {
	c.missing[a.ID] = a.Outcome != Held
	c.out.Assumptions = append(c.out.Assumptions, a)
}

// Holds tells whether an assumption was asked and holds.
func (c *Checker) Holds(id string) bool {
	missing, asked := c.missing[id]
	return asked && !missing
}

// Result is what was found so far.
func (c *Checker) Result() Conformance { return c.out }

// judge turns an answer into an outcome. An error that says nothing of the statement, as that of a lost connection, is
// no answer.
func (c *Checker) judge(held bool, found string, err error) (outcome, text string) {
	var unchecked *UncheckedError
	switch {
	case errors.As(err, &unchecked):
		return NotChecked, c.hider.text(unchecked.Why)
	case err != nil && !c.Answers(err):
		return NotChecked, c.said(err)
	case err != nil:
		return NotHeld, c.said(err)
	case held:
		return Held, c.hider.value(found)
	}
	return NotHeld, c.hider.value(found)
}

// accountNumber is what the account calls an error.
var accountNumber = regexp.MustCompile(`^[0-9]{6}$`)

// Answers tells whether an error is what the account says of the statement itself: neither of a way there, nor of a
// warehouse that does not run, nor of a sign-in.
func (c *Checker) Answers(err error) bool {
	e := c.db.Classify(err)
	if !accountNumber.MatchString(e.Code) || strings.HasPrefix(e.Code, "39") {
		return false
	}
	switch e.Class {
	case engine.ErrClassSyntax, engine.ErrClassAuth, engine.ErrClassData, engine.ErrClassConstraint, engine.ErrClassOther:
		return true
	}
	return false
}

// said is an error by its number, and its text without what is of this account.
func (c *Checker) said(err error) string {
	e := c.db.Classify(err)
	return strings.TrimSpace(e.Code + " " + c.hider.text(e.Message))
}

// cleanTimeout bounds the end of a check.
const cleanTimeout = 2 * time.Minute

// Clean drops what the check has made, and says whether it could, also when the check was given up.
func (c *Checker) Clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	a := Assumption{ID: "check.clean", Sentence: "What the check makes, it can drop.", Outcome: Held}
	for _, name := range c.made {
		if err := c.db.Exec(ctx, "DROP TABLE IF EXISTS "+name); err != nil {
			a.Outcome, a.Found = NotHeld, "tables are left, whose names begin with "+CheckPrefix+": "+c.said(err)
		}
	}
	c.Add(a)
}

// own is a statement of a probe with the names of this check.
func (c *Checker) own(sql string) string {
	for _, name := range checkTables {
		if strings.Contains(sql, CheckPrefix+name) {
			c.Table(name)
		}
	}
	return strings.ReplaceAll(sql, CheckPrefix, c.prefix)
}

// checkTables are those that probes name.
var checkTables = []string{"STANDARD", "OTHER", "HYBRID", "HYBRID2", "INTERACTIVE", "ALTERED", "SHORT"}

func (c *Checker) exec(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if err := c.db.Exec(ctx, c.own(sql)); err != nil {
			return err
		}
	}
	return nil
}

// one is the only value of a query, as text.
func (c *Checker) one(ctx context.Context, sql string, args ...any) (string, error) {
	rs, err := c.db.Query(ctx, c.own(sql), args...)
	if err != nil {
		return "", err
	}
	if len(rs.Rows) != 1 || len(rs.Rows[0]) == 0 {
		return fmt.Sprintf("%d rows", len(rs.Rows)), nil
	}
	return fmt.Sprint(rs.Rows[0][0]), nil
}

// value asks for one value, which is assumed to be want.
func value(want, sql string, args ...any) func(context.Context, *Checker) (bool, string, error) {
	return func(ctx context.Context, c *Checker) (bool, string, error) {
		got, err := c.one(ctx, sql, args...)
		if got == want {
			return true, "", err
		}
		return false, got, err
	}
}

// executed asks whether statements are executed.
func executed(statements ...string) func(context.Context, *Checker) (bool, string, error) {
	return func(ctx context.Context, c *Checker) (bool, string, error) {
		return true, "", c.exec(ctx, statements...)
	}
}

// refused asks whether a statement is refused, with one of these numbers where any are given. What is found is the
// number.
func refused(sql string, codes ...string) func(context.Context, *Checker) (bool, string, error) {
	return func(ctx context.Context, c *Checker) (bool, string, error) {
		err := c.exec(ctx, sql)
		switch {
		case err == nil:
			return false, "it was executed", nil
		case !c.Answers(err):
			return false, "", err
		case len(codes) == 0 && c.db.Classify(err).Class == engine.ErrClassAuth:
			return false, "", &UncheckedError{"the role may not ask: " + c.said(err)}
		}
		return len(codes) == 0 || slices.Contains(codes, c.db.Classify(err).Code), c.said(err), nil
	}
}

// listed asks whether a statement lists columns of these names.
func listed(sql string, names ...string) func(context.Context, *Checker) (bool, string, error) {
	return func(ctx context.Context, c *Checker) (bool, string, error) {
		rs, err := c.db.Query(ctx, c.own(sql))
		if err != nil {
			return false, "", err
		}
		var lacks []string
		for _, name := range names {
			if columnAt(rs, name) < 0 {
				lacks = append(lacks, name)
			}
		}
		if len(lacks) > 0 {
			return false, "it has no column " + strings.Join(lacks, ", "), nil
		}
		return true, "", nil
	}
}

// columnAt is where a result has a column, -1 where it has none.
func columnAt(rs *target.ResultSet, name string) int {
	return slices.IndexFunc(rs.Columns, func(have string) bool { return strings.EqualFold(have, name) })
}
