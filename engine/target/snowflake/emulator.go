package snowflake

import (
	"context"
	"errors"
	"strings"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine/target"
)

// identity are the functions that say who answers: version, database, user, warehouse, role.
var identity = [...]string{"CURRENT_VERSION()", "CURRENT_DATABASE()", "CURRENT_USER()", "CURRENT_WAREHOUSE()",
	"CURRENT_ROLE()"}

// serverIdentity asks for identity. An account knows all of these functions; a server
// that refuses one of them is an emulator, and what it knows is asked one by one.
func serverIdentity(ctx context.Context, s session) (who [len(identity)]string, emulated bool, err error) {
	rs, err := query(ctx, s, "SELECT "+strings.Join(identity[:], ", "), nil)
	if err == nil {
		if len(rs.Rows) == 1 && len(rs.Rows[0]) == len(identity) {
			for i := range identity {
				who[i], _ = rs.Rows[0][i].(string)
			}
		}
		return who, false, nil
	}
	if !refusesFunction(err) {
		return who, false, err
	}
	for i, function := range identity {
		rs, err := query(ctx, s, "SELECT "+function, nil)
		switch {
		case err == nil && len(rs.Rows) == 1:
			who[i], _ = rs.Rows[0][0].(string)
		case err != nil && !refusedByServer(err):
			return who, true, err
		}
	}
	return who, true, nil
}

// refusesFunction reports an error that names one of the functions of identity:
// an account that refuses to work at all names none.
func refusesFunction(err error) bool {
	if !refusedByServer(err) {
		return false
	}
	text := strings.ToUpper(err.Error())
	for _, function := range identity {
		if strings.Contains(text, strings.TrimSuffix(function, "()")) {
			return true
		}
	}
	return false
}

// refusedByServer reports that the server itself refused a statement.
func refusedByServer(err error) bool {
	var server *sf.SnowflakeError
	return errors.As(err, &server)
}

// abilities are what an emulator may lack, each with a statement that a server with the
// ability takes or refuses for want of an object only. Nothing is changed by any of them.
var abilities = [...]struct {
	name, sql, without string
	// object: what is named is not there, and a server with the ability says so.
	object bool
}{
	{name: target.LacksWarehouses, sql: "SELECT CURRENT_WAREHOUSE()", without: "warehouses"},
	{name: target.LacksGrants, sql: "SELECT CURRENT_SECONDARY_ROLES()", without: "roles and grants"},
	{name: target.LacksHistory, sql: "SELECT QUERY_ID FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(RESULT_LIMIT => 1))",
		without: "a history of queries"},
	// In the words in which the adapters have rows made.
	{name: target.LacksGenerator,
		sql: "SELECT RANDSTR(1 + MOD(ABS(HASH(N, 1)), 2), HASH(N, 0)) FROM (SELECT ROW_NUMBER() OVER (ORDER BY " +
			"SEQ8()) - 1 + 0 AS N FROM TABLE(GENERATOR(ROWCOUNT => 1))) AS G ORDER BY N",
		without: "rows of its own making"},
	{name: target.LacksSwap, sql: `ALTER TABLE "LOADSTONE: NO SUCH TABLE" SWAP WITH "LOADSTONE: NONE EITHER"`,
		without: "swapping tables", object: true},
}

// missingAbilities asks an emulator for everything that a run could need and it may not have.
func missingAbilities(ctx context.Context, s session) ([]string, error) {
	var list []string
	for _, a := range abilities {
		_, err := query(ctx, s, a.sql, nil)
		switch {
		case err == nil:
		case !refusedByServer(err):
			return nil, err
		case a.object && noSuchObject(err):
		default:
			list = append(list, a.name)
		}
	}
	return list, nil
}

// noSuchObject reports 002003 or 002043, which name something that is not there.
func noSuchObject(err error) bool {
	var server *sf.SnowflakeError
	return errors.As(err, &server) && (server.Number == 2003 || server.Number == 2043)
}

// emulatorNote says in a sentence what the server is.
func emulatorNote(lacks []string) string {
	text := "The server is an emulator of Snowflake: another engine answers, and its figures say nothing about Snowflake."
	var without []string
	for _, a := range abilities {
		for _, name := range lacks {
			if name == a.name {
				without = append(without, a.without)
			}
		}
	}
	if len(without) > 0 {
		text += " It is without " + strings.Join(without, ", ") + "."
	}
	return text
}
