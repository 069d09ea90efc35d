package snowflakeexport

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// TableMark begins the comment of a table that Loadstone has made; the version of its columns follows.
const TableMark = "Loadstone table "

// version rises with each change of the columns of a table.
const version = "1"

// The tables.
const (
	Executions = "QUERY_EXECUTIONS"
	Parts      = "LOADSTONE_PARTS"
	Runs       = "LOADSTONE_RUNS"
	Results    = "TEST_RESULTS"
	Polls      = "WAREHOUSE_POLL_SNAPSHOTS"
)

// table is one table as it is made.
type table struct {
	name, about, columns string
	// needed: without it nothing can be taken to the account.
	needed bool
}

// all are the tables, in the order in which they are made.
var all = []table{
	{Executions, "the single executions of runs", `RUN_ID VARCHAR NOT NULL, PART VARCHAR NOT NULL,
	SEQ NUMBER(18,0) NOT NULL, DUE_AT TIMESTAMP_NTZ NOT NULL, STARTED_AT TIMESTAMP_NTZ NOT NULL,
	APP_ELAPSED_MS FLOAT NOT NULL, SCHEDULE_LAG_MS FLOAT NOT NULL, POOL_WAIT_MS FLOAT NOT NULL,
	DECODE_NS NUMBER(18,0) NOT NULL, CONNECTION_ID NUMBER(18,0) NOT NULL, STEP NUMBER(9,0) NOT NULL,
	ROW_COUNT NUMBER(18,0) NOT NULL, RETRIES NUMBER(9,0) NOT NULL, STATEMENT_POSITION NUMBER(9,0) NOT NULL,
	WARMUP BOOLEAN NOT NULL, SUCCESS BOOLEAN NOT NULL, ROLLED_BACK BOOLEAN NOT NULL, WORKER_ID VARCHAR NOT NULL,
	QUERY_KIND VARCHAR NOT NULL, STATEMENT_ID VARCHAR NOT NULL, ERROR_CLASS VARCHAR, ERROR_CODE VARCHAR,
	ERROR_MESSAGE VARCHAR, SERVER_QUERY_ID VARCHAR`, true},
	{Parts, "which parts of runs are in QUERY_EXECUTIONS", `RUN_ID VARCHAR NOT NULL, PART VARCHAR NOT NULL,
	SHA256 VARCHAR NOT NULL, ROW_COUNT NUMBER(18,0) NOT NULL`, true},
	{Runs, "who writes the rows of a run", "RUN_ID VARCHAR NOT NULL, EPOCH NUMBER(18,0) NOT NULL", true},
	{Results, "runs of which all is there", `RUN_ID VARCHAR NOT NULL, RUN_NAME VARCHAR, TEMPLATE_NAME VARCHAR,
	ADAPTER VARCHAR, TABLE_NAME VARCHAR, STATUS VARCHAR, VERDICT VARCHAR, SIMULATED BOOLEAN, LOAD_MODE VARCHAR,
	START_TIME TIMESTAMP_NTZ, END_TIME TIMESTAMP_NTZ, DURATION_SECONDS FLOAT, QPS FLOAT, WAREHOUSE_NAME VARCHAR,
	WAREHOUSE_SIZE VARCHAR, CREDITS FLOAT, PRICE FLOAT, CURRENCY VARCHAR, PRICE_PER_MILLION FLOAT, CREATED_BY VARCHAR,
	FINGERPRINT VARCHAR`, false},
	{Polls, "what the warehouses of runs said", `RUN_ID VARCHAR NOT NULL, TIMESTAMP TIMESTAMP_NTZ NOT NULL,
	ELAPSED_SECONDS FLOAT NOT NULL, WAREHOUSE_NAME VARCHAR NOT NULL, STATE VARCHAR, WAREHOUSE_TYPE VARCHAR,
	WAREHOUSE_SIZE VARCHAR, STARTED_CLUSTERS NUMBER(9,0), RUNNING NUMBER(9,0), QUEUED NUMBER(9,0),
	MIN_CLUSTER_COUNT NUMBER(9,0), MAX_CLUSTER_COUNT NUMBER(9,0), SCALING_POLICY VARCHAR`, false},
}

func (t table) comment(about string) string {
	return "'" + strings.ReplaceAll(TableMark+version+": "+about, "'", "''") + "'"
}

func (t table) create() string {
	return "CREATE TABLE IF NOT EXISTS " + t.name + " (" + t.columns + ") COMMENT = " + t.comment(t.about)
}

// declared are its columns by name, each as INFORMATION_SCHEMA writes it.
func (t table) declared() map[string]string {
	columns := map[string]string{}
	for c := range strings.SplitSeq(strings.Join(strings.Fields(t.columns), " "), ", ") {
		c, required := strings.CutSuffix(c, " NOT NULL")
		name, kind, _ := strings.Cut(c, " ")
		if kind == "VARCHAR" {
			kind = "TEXT"
		}
		if required {
			kind += " NOT NULL"
		}
		columns[name] = kind
	}
	return columns
}

// TableStatus says which tables are Loadstone's, and in sentences what is wrong with the others.
type TableStatus struct {
	foreign map[string]bool
	// Problem is about those without which runs are taken in all the same.
	Problem string
}

// Has tells whether a table is there and Loadstone's.
func (m TableStatus) Has(name string) bool { return !m.foreign[name] }

// Missing are those of the tables that a query reads which are not Loadstone's.
func (m TableStatus) Missing(query string) (names []string) {
	for _, t := range all {
		if m.foreign[t.name] && strings.Contains(query, t.name) {
			names = append(names, t.name)
		}
	}
	return names
}

// MakeTables makes the tables in the schema of the account's sessions, as far as they are not there. Where one without
// which nothing can be taken there is somebody else's, that is an engine.CodeConflict.
func MakeTables(ctx context.Context, a SQLAccount) (made TableStatus, err error) {
	there, err := existingObjects(ctx, a)
	if err != nil {
		return made, err
	}
	why := map[string]string{}
	created := false
	for _, t := range all {
		if _, exists := there[t.name]; exists {
			continue
		}
		created = true
		if why[t.name], err = refusalReason(ctx, a, t, a.Exec(ctx, t.create())); err != nil {
			return made, err
		}
	}
	if created {
		// Somebody may have been faster; and what the role does not see is not made, and no error.
		if there, err = existingObjects(ctx, a); err != nil {
			return made, err
		}
	}
	made.foreign = map[string]bool{}
	var left []string
	for _, t := range all {
		reason := why[t.name]
		if reason == "" {
			if reason, err = t.claim(ctx, a, there); err != nil {
				return made, err
			}
		}
		if reason == "" {
			continue
		}
		if t.needed {
			return made, &engine.Error{Code: engine.CodeConflict,
				Message: fmt.Sprintf("The table %s of the results connection cannot be written to.", t.name), Hint: reason}
		}
		made.foreign[t.name] = true
		left = append(left, t.name+": "+reason)
	}
	if len(left) > 0 {
		made.Problem = "Not written to: " + strings.Join(left, " ")
	}
	return made, nil
}

// refusalReason is the sentence of an account that does not let a table be made; an error is of one that cannot be
// asked.
func refusalReason(ctx context.Context, a SQLAccount, t table, err error) (why string, _ error) {
	if err == nil {
		return "", nil
	}
	said := a.Classify(err)
	switch said.Code {
	case codeThere:
		return "", nil
	case CodeAccessDenied:
		return "The account says: " + Sentence(said.Message) + " Cure: " + Grant(ctx, a, "CREATE TABLE") + ".", nil
	case CodeNameTaken, CodeOtherKind:
		return "Something else has that name. The account says: " + Sentence(said.Message) + renameHint, nil
	}
	return "", fmt.Errorf("making the table %s of the results connection: %w", t.name, err)
}

// renameHint ends each sentence about what is somebody else's.
const renameHint = " Cure: rename or drop it, or let the connection name another schema."

// claim says why a table that is there is not Loadstone's, "" when it is. One that an earlier version has made gets
// its mark.
func (t table) claim(ctx context.Context, a SQLAccount, there map[string]existingObject) (why string, err error) {
	f, exists := there[t.name]
	marked := strings.HasPrefix(f.comment, TableMark)
	differs := f.differs(t, !marked)
	switch {
	case !exists:
		return "Something of that name belongs to another role, which does not show it to this one. Cure: have its owner " +
			"rename or drop it, or let the connection name another schema.", nil
	case f.kind != "BASE TABLE":
		return "It is not a plain table but a " + strings.ToLower(f.kind) + "." + renameHint, nil
	case marked && differs != "":
		return "Loadstone has made it, and it was changed since: " + differs + "." + renameHint, nil
	case marked:
		return "", nil
	case differs != "":
		return "A table of that name is there that Loadstone has not made: " + differs + "." + renameHint, nil
	}
	about := t.about
	if f.comment != "" {
		about = f.comment // what somebody has written about it stays
	}
	err = a.Exec(ctx, "COMMENT ON TABLE "+t.name+" IS "+t.comment(about))
	if err != nil && a.Classify(err).Code == CodeAccessDenied {
		return "It has no mark of Loadstone's, and belongs to another role, so that nobody knows whose it is." +
			renameHint, nil
	}
	if err != nil {
		return "", fmt.Errorf("marking the table %s of the results connection: %w", t.name, err)
	}
	return "", nil
}

// existingObject is what an account has under a name.
type existingObject struct {
	kind, comment string
	columns       map[string]string
}

// differs says which columns of a table are missing or another. Unless they are to be the same exactly, columns may be
// there besides that a row can do without, and a column may be NULL.
func (f existingObject) differs(t table, exactly bool) string {
	declared := t.declared()
	var wrong []string
	for name, kind := range declared {
		switch have, there := f.columns[name]; {
		case !there:
			wrong = append(wrong, "it has no column "+name)
		case have != kind && (exactly || have+" NOT NULL" != kind):
			wrong = append(wrong, fmt.Sprintf("its column %s is %s, and not %s", name, have, kind))
		}
	}
	for name, kind := range f.columns {
		if _, ours := declared[name]; !ours && (exactly || strings.HasSuffix(kind, " NOT NULL")) {
			wrong = append(wrong, fmt.Sprintf("it has a column %s %s of its own", Quoted(name), kind))
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 3 {
		wrong = append(wrong[:3], fmt.Sprintf("and %d more", len(wrong)-3))
	}
	return strings.Join(wrong, ", ")
}

// existingObjects reads what the schema has under the names of the tables.
func existingObjects(ctx context.Context, a SQLAccount) (map[string]existingObject, error) {
	marks, names := "", []any{}
	for _, t := range all {
		marks, names = marks+", ?", append(names, t.name)
	}
	where := " WHERE TABLE_SCHEMA = CURRENT_SCHEMA() AND TABLE_NAME IN (" + marks[2:] + ")"
	rs, err := a.Query(ctx, "SELECT TABLE_NAME, TABLE_TYPE, COALESCE(COMMENT, '') FROM INFORMATION_SCHEMA.TABLES"+where,
		names...)
	if err != nil {
		return nil, fmt.Errorf("looking which tables the results connection has: %w", err)
	}
	there := map[string]existingObject{}
	for _, r := range rs.Rows {
		there[fmt.Sprint(r[0])] = existingObject{fmt.Sprint(r[1]), fmt.Sprint(r[2]), map[string]string{}}
	}
	rs, err = a.Query(ctx, `SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE ||
		CASE DATA_TYPE WHEN 'NUMBER' THEN '(' || NUMERIC_PRECISION || ',' || NUMERIC_SCALE || ')' ELSE '' END ||
		CASE IS_NULLABLE WHEN 'NO' THEN ' NOT NULL' ELSE '' END FROM INFORMATION_SCHEMA.COLUMNS`+where, names...)
	if err != nil {
		return nil, fmt.Errorf("looking which columns the results connection has: %w", err)
	}
	for _, r := range rs.Rows {
		if f, ok := there[fmt.Sprint(r[0])]; ok {
			f.columns[fmt.Sprint(r[1])] = fmt.Sprint(r[2])
		}
	}
	return there, nil
}
