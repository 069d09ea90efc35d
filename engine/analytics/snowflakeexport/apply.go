package snowflakeexport

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sql"
)

// Applied says what was done with one object of the schema.
type Applied struct {
	Name, Done string
	// Refused is the sentence of why nothing was done, "" otherwise.
	Refused string
}

// ApplySchema makes the tables and views in the schema of the account's sessions, and brings older ones up to date; it
// may be repeated. What is somebody else's or of a later version is left, and no column that somebody has added is
// dropped, no property that somebody has set is unset. An error is of an account that cannot be asked.
func ApplySchema(ctx context.Context, a SQLAccount) (done []Applied, err error) {
	there, err := existingObjects(ctx, a)
	if err != nil {
		return nil, err
	}
	s := SchemaStatus{unusable: map[string]bool{}}
	for _, o := range theSchema().objects {
		step := Applied{Name: o.name}
		if read := s.missing(o); o.view && len(read) > 0 {
			step.Refused = "It reads " + strings.Join(read, " and ") + "."
		} else if e, exists := there[o.name]; exists {
			step.Done, step.Refused, err = o.update(ctx, a, e)
		} else {
			step.Done = "created"
			step.Refused, err = refusalReason(ctx, a, o, a.Exec(ctx, o.statement))
		}
		if err != nil {
			return done, err
		}
		s.unusable[o.name] = step.Refused != ""
		done = append(done, step)
	}
	if s.Has(Runs) {
		if err := a.Exec(ctx, theSchema().rows...); err != nil {
			return done, fmt.Errorf("filling the tables of the results connection: %w", err)
		}
	}
	return done, nil
}

// AnyObject tells whether the schema of the account's sessions has something under one of the names of the schema.
func AnyObject(ctx context.Context, a SQLAccount) (bool, error) {
	there, err := existingObjects(ctx, a)
	return len(there) > 0, err
}

// update upgrades an existing object.
func (o *object) update(ctx context.Context, a SQLAccount, e existingObject) (done, refused string, err error) {
	if foreign := e.foreign(o); foreign != "" {
		return "", foreign, nil
	}
	version, _ := versionOf(e.comment, o.mark())
	current := version == sql.SnowflakeVersion
	if !o.view {
		current = current && e.differs(o.columns, false) == ""
	}
	statements := []string{o.statement}
	switch {
	case version > sql.SnowflakeVersion:
		return fmt.Sprintf("left as it is: version %d is newer than this program's", version), "", nil
	case current:
		return "current", "", nil
	case !o.view:
		if statements, refused = o.additions(e); refused != "" {
			return "", refused, nil
		}
	}
	refused, err = refusalReason(ctx, a, o, a.Exec(ctx, statements...))
	return "updated", refused, err
}

// additions are the statements that add what a table lacks. CREATE OR ALTER TABLE would drop the columns that somebody
// has added, and unset what somebody has set: a clustering key, the retention of data, change tracking.
func (o *object) additions(e existingObject) (statements []string, refused string) {
	var lacks []column
	for _, c := range o.columns {
		if _, there := e.column(c.name); !there {
			lacks = append(lacks, c)
		}
	}
	rest := slices.DeleteFunc(slices.Clone(o.columns), func(c column) bool { return slices.Contains(lacks, c) })
	if wrong := e.differs(rest, false); wrong != "" {
		return nil, "Loadstone has made it, and it was changed since: " + wrong + "." + renameHint
	}
	for _, c := range lacks {
		statements = append(statements, "ALTER TABLE "+o.name+" ADD COLUMN "+c.name+" "+c.kind)
	}
	return append(statements, o.commentOn(e.about(o))), ""
}

// firstAboutResults is what version 1 said about TEST_RESULTS, which is not true any more.
const firstAboutResults = "runs of which all is there"

// about is what a table's comment is to say: what somebody has written about it stays.
func (e existingObject) about(o *object) string {
	text := e.comment
	if _, marked := versionOf(text, TableMark); marked {
		_, text, _ = strings.Cut(text, ": ")
	}
	if text == "" || text == firstAboutResults {
		return o.about
	}
	return text
}

func (o *object) commentOn(about string) string {
	return "COMMENT ON TABLE " + o.name + " IS '" + strings.ReplaceAll(o.comment(about), "'", "''") + "'"
}

// refusalReason is the sentence of an account that refuses a statement; an error is of one that cannot be asked.
func refusalReason(ctx context.Context, a SQLAccount, o *object, err error) (why string, _ error) {
	if err == nil {
		return "", nil
	}
	kind := "table"
	if o.view {
		kind = "view"
	}
	said := a.Classify(err)
	switch {
	case said.Code == CodeAccessDenied:
		// Lists name only what the role has a right on, and the account says the same of what somebody else owns.
		return "The account says: " + Sentence(said.Message) + " Cure: " + Grant(ctx, a, "CREATE "+strings.ToUpper(kind)) +
			" – or, where the role has that, something of that name belongs to another role, which does not show it to this " +
			"one: have its owner rename or drop it, or let the connection name another schema.", nil
	case said.Code == CodeNameTaken || said.Code == CodeOtherKind:
		return "Something else has that name. The account says: " + Sentence(said.Message) + renameHint, nil
	case said.Class == engine.ErrClassSyntax:
		return "The account says: " + Sentence(said.Message), nil
	}
	return "", fmt.Errorf("making the %s %s of the results connection: %w", kind, o.name, err)
}
