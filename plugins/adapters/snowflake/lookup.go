package snowflake

import (
	"strings"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
)

// whereQuery asks where a name without a schema is looked for.
var whereQuery = sdk.Query{ID: "where", SQL: "SELECT CURRENT_DATABASE(), CURRENT_SCHEMA(), CURRENT_WAREHOUSE()"}

// foundTable is a table that is there.
type foundTable struct {
	name dialect.TableName
	// kind is BASE TABLE, VIEW, EXTERNAL TABLE …
	kind string
	// estimate of the rows by Snowflake's own count, -1 where it keeps none.
	estimate int64
}

func readFound(r sdk.Result) (f foundTable, ok bool) {
	if r.Err != "" || r.Rows.Len() == 0 {
		return f, false
	}
	row := r.Rows.At(0)
	f.name = dialect.TableName{Database: dialect.Exactly(row.At(0).Str()), Schema: dialect.Exactly(row.At(1).Str()),
		Table: dialect.Exactly(row.At(2).Str())}
	f.kind = row.At(3).Str()
	if f.estimate, ok = row.At(4).Int(); !ok {
		f.estimate = -1
	}
	return f, true
}

// field is the value of a column of a SHOW command; what columns it has differs
// between releases, so they go by name.
func field(r sdk.Result, row int, column string) string {
	for i, c := range r.Columns {
		if strings.EqualFold(c, column) {
			return r.Rows.At(row).At(i).Str()
		}
	}
	return ""
}
