package derived

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
	"github.com/loadstone-db/loadstone/storage/resultsrole"
)

// serving is what is known of the reader's rights, for a while: an administrator may give and take some.
type serving struct {
	// turn is full while somebody looks, or reads what follows. Who waits for it can give up.
	turn    chan struct{}
	until   time.Time
	refusal error
	// effects are the functions of the database that may do more than read, as resultsrole.SideEffects has them.
	effects map[string]bool
}

// servingFor is how long that is believed.
const servingFor = 30 * time.Second

// checkStatement refuses SQL of users where the reader may do more than read, and what calls functions with side
// effects. Where the role is as it should be the database refuses those too, but for some that only a superuser can
// take from it.
func (d *Database) checkStatement(ctx context.Context, field, sql string) error {
	effects, err := d.readerRights(ctx)
	if err != nil {
		return err
	}
	return checkCalls(field, sql, effects)
}

// CheckReader refuses a reader that may do too much, by each of its rights. What it may do besides that Loadstone takes
// from users by itself is returned in words.
func (d *Database) CheckReader(ctx context.Context) (tolerated []string, err error) {
	rights, err := resultsrole.Excess(ctx, d.checks, d.owner.Config().ConnConfig.User)
	if err != nil {
		return nil, wrapError("looking at the rights of the reader", err)
	}
	var much []string
	for _, r := range rights {
		if r.Tolerated {
			tolerated = append(tolerated, r.What)
		} else {
			much = append(much, r.What)
		}
	}
	if len(much) == 0 {
		return tolerated, nil
	}
	return tolerated, &engine.Error{Code: engine.CodeConflict,
		Message: fmt.Sprintf("The role %q of %s %s: no SQL of users is executed as that role.", d.readerRole, readerFlag,
			join(much)),
		Hint: "`loadstone schema apply --results` makes the role as it should be, and says what only an administrator can " +
			"do; or name another role: CREATE ROLE results_reader LOGIN. It is looked at again within 30 s."}
}

func join(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func (d *Database) readerRights(ctx context.Context) (map[string]bool, error) {
	s := &d.serving
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	if time.Now().Before(s.until) {
		return s.effects, s.refusal
	}
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	_, err := d.CheckReader(ctx)
	if err != nil && !engine.HasCode(err, engine.CodeConflict) {
		return nil, err
	}
	effects, known := resultsrole.SideEffects(ctx, d.checks)
	if known != nil {
		return nil, wrapError("looking at the functions of the results database", known)
	}
	s.refusal, s.effects, s.until = err, effects, time.Now().Add(servingFor)
	return s.effects, s.refusal
}

// checkCalls refuses a statement that names a function with side effects where it may call it.
func checkCalls(field, sql string, effects map[string]bool) error {
	tokens, err := sqltext.Tokens(sql, sqltext.DialectOf("postgres"))
	if err != nil {
		return &engine.Error{Code: engine.CodeInvalid, Cause: err, Message: fmt.Sprintf("The SQL cannot be read: %v.", err),
			Hint: unparsedHint}
	}
	for i, t := range tokens {
		name, calls := sqltext.Call(tokens, i)
		if !calls && i > 0 && tokens[i-1].Is(".") { // r.f is f(r)
			if name, _ = t.Identifier(); !effects[name] {
				name = ""
			}
		}
		_, refused := effects[name]
		var e *engine.Error
		switch {
		case t.Kind == sqltext.Name && sqltext.Escapes(tokens, i):
			e = engine.InvalidField(field, "has a name that is spelled with escapes", "write the name as it is")
		case calls && name == "treat" && t.Kind != sqltext.Name:
			e = engine.InvalidField(field, "has a TREAT, which calls any function", "write CAST in its place")
		case refused:
			e = engine.InvalidField(field, fmt.Sprintf("calls %s, which does more than read", name),
				"leave it out: results can be read, and functions with side effects cannot be called")
		default:
			continue
		}
		e.Fields[0].Line, e.Fields[0].Column = lineAndColumn(sql, utf8.RuneCountInString(sql[:t.At])+1)
		return e
	}
	return nil
}
