package snowflakeexport

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// ViewMark begins the comment of a view that Loadstone has made; the version of the text follows.
const ViewMark = "Loadstone view "

// Version rises with each change of a text below sql.
const Version = 1

//go:embed sql/*.sql
var viewFiles embed.FS

// View is one view: its name in the account, what it shows, and its query.
type View struct{ Name, About, Query string }

// All are the views, those that a reader looks at first in front.
func All() []View {
	names := []string{"V_RUN_SUMMARY", "V_RUN_TIMESERIES", "V_KIND_STATS", "V_STATEMENT_STATS", "V_ERROR_STATS",
		"V_WAREHOUSE_TIMESERIES"}
	all := make([]View, len(names))
	for i, name := range names {
		text, err := viewFiles.ReadFile("sql/" + strings.ToLower(name) + ".sql")
		if err != nil {
			panic("views: an embedded file cannot be read: " + err.Error())
		}
		about, query, _ := strings.Cut(string(text), "\n")
		all[i] = View{name, strings.TrimPrefix(about, "-- "), strings.TrimSpace(query)}
	}
	return all
}

// ViewStatus says which views are there, and in sentences why others are not.
type ViewStatus struct {
	Views   []string
	Problem string
}

// MakeViews makes the views in the schema of the account's sessions, as far as they are not there and the tables that
// they read are Loadstone's. One that the account refuses is left out, and named with the cure; an error is of an
// account that cannot be asked.
func MakeViews(ctx context.Context, a SQLAccount, read TableStatus) (made ViewStatus, err error) {
	there, err := comments(ctx, a)
	if err != nil {
		return made, err
	}
	var left, reasons []string
	for _, v := range All() {
		comment, taken := there[v.Name]
		why := ""
		switch version, ours := versionOf(comment); {
		case len(read.Missing(v.Query)) > 0:
			why = "What reads " + strings.Join(read.Missing(v.Query), " and ") + " comes when that is Loadstone's."
		case taken && !ours:
			why = "A view of that name is there that Loadstone has not made: rename or drop it, or let the connection name " +
				"another schema."
		case taken && version >= Version:
		default:
			if why, err = makeView(ctx, a, v); err != nil {
				return made, err
			}
		}
		if why == "" {
			made.Views = append(made.Views, v.Name)
			continue
		}
		left = append(left, v.Name)
		if !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	if len(left) > 0 {
		made.Problem = fmt.Sprintf("Not made: %s. %s", Named("view", left), strings.Join(reasons, " "))
	}
	return made, nil
}

// makeView makes one view; why is the sentence of an account that refuses it.
func makeView(ctx context.Context, a SQLAccount, v View) (why string, err error) {
	err = a.Exec(ctx, "CREATE OR REPLACE VIEW "+v.Name+" COMMENT = '"+ViewMark+strconv.Itoa(Version)+": "+
		strings.ReplaceAll(v.About, "'", "''")+"' AS "+v.Query)
	if err == nil {
		return "", nil
	}
	said := a.Classify(err)
	switch {
	case said.Code == codeThere:
		return "", nil
	case said.Code == CodeAccessDenied:
		// SHOW VIEWS names only what the role has a right on, and the account says the same of a view of somebody else.
		return "The account says: " + Sentence(said.Message) + " Cure: " + Grant(ctx, a, "CREATE VIEW") +
			" – or, where the role has that, something of that name belongs to another role, which SHOW VIEWS does not show " +
			"to this one: have its owner rename or drop it, or let the connection name another schema.", nil
	case said.Code == CodeNameTaken || said.Code == CodeOtherKind:
		return "Something else has that name: rename or drop it, or let the connection name another schema. The account " +
			"says: " + Sentence(said.Message), nil
	case said.Class == engine.ErrClassSyntax:
		return "The account says: " + Sentence(said.Message), nil
	}
	return "", fmt.Errorf("making the view %s: %w", v.Name, err)
}

// comments are those of the views that are there, by their names.
func comments(ctx context.Context, a SQLAccount) (map[string]string, error) {
	rs, err := a.Query(ctx, `SHOW VIEWS LIKE 'V%' IN SCHEMA`)
	if err != nil {
		return nil, fmt.Errorf("looking which views are there: %w", err)
	}
	name, comment := -1, -1
	for i, c := range rs.Columns {
		switch strings.ToLower(c) {
		case "name":
			name = i
		case "comment":
			comment = i
		}
	}
	there := map[string]string{}
	for _, r := range rs.Rows {
		if name < 0 || comment < 0 {
			return nil, fmt.Errorf("looking which views are there: the account lists %v", rs.Columns)
		}
		text, _ := r[comment].(string)
		there[fmt.Sprint(r[name])] = text
	}
	return there, nil
}

// versionOf reads the version of a view from its comment; ours tells that Loadstone has made it.
func versionOf(comment string) (version int, ours bool) {
	rest, ours := strings.CutPrefix(comment, ViewMark)
	if !ours {
		return 0, false
	}
	number, _, _ := strings.Cut(rest, ":")
	version, err := strconv.Atoi(number)
	return version, err == nil
}
