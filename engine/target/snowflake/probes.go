package snowflake

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine/target"
)

// probes are asked in this order.
var probes = []probe{
	{"session.utc", "TIMEZONE of a session is UTC.", "", sessionParameter("TIMEZONE", "UTC")},
	{
		"session.cache",
		"USE_CACHED_RESULT is off: every query is executed.",
		"",
		sessionParameter("USE_CACHED_RESULT", "false"),
	},
	{"session.autocommit", "AUTOCOMMIT is on.", "", sessionParameter("AUTOCOMMIT", "true")},
	{"session.warehouse", "The session has a warehouse.", "", value("true", "SELECT CURRENT_WAREHOUSE() IS NOT NULL")},
	{"session.role", "The session has a role.", "", value("true", "SELECT CURRENT_ROLE() IS NOT NULL")},
	{"session.schema", "The session has a schema.", "", value("true", "SELECT CURRENT_SCHEMA() IS NOT NULL")},
	{
		"warehouses.columns",
		"SHOW WAREHOUSES has the columns that a poll reads.",
		"",
		listed("SHOW WAREHOUSES", "name", "state",
			"type", "size", "running", "queued", "auto_suspend", "auto_resume"),
	},
	{"warehouses.clusters", "SHOW WAREHOUSES has the clusters (Enterprise edition).", "", listed("SHOW WAREHOUSES",
		"min_cluster_count", "max_cluster_count", "started_clusters", "scaling_policy")},
	{"warehouses.parameters", "SHOW PARAMETERS IN WAREHOUSE has keys, values and levels.", "session.warehouse",
		warehouseParameters},
	{"session.levels", "SHOW PARAMETERS IN SESSION says at which level a parameter is set.", "", listed(
		"SHOW PARAMETERS LIKE 'TIMEZONE' IN SESSION", "key", "value", "default", "level")},
	{"databases.list", "SHOW DATABASES lists databases by name.", "", listed("SHOW DATABASES LIMIT 50", "name")},
	{"history.columns", "QUERY_HISTORY_BY_USER of a database has the columns that enrichment reads.", "session.schema",
		userHistory},
	{"history.aggregates", "The role may read ACCOUNT_USAGE.AGGREGATE_QUERY_HISTORY.", "", executed(
		"SELECT 1 FROM SNOWFLAKE.ACCOUNT_USAGE.AGGREGATE_QUERY_HISTORY LIMIT 1")},
	{"standard.create", "The role may make a standard table.", "session.schema", executed(
		"CREATE TABLE LOADSTONE_CHECK_STANDARD (ID NUMBER(18,0) NOT NULL, V FLOAT, PRIMARY KEY (ID))")},
	{"standard.keys", "A primary key of a standard table is not enforced.", "standard.create", executed(
		"INSERT INTO LOADSTONE_CHECK_STANDARD (ID, V) VALUES (1, 0.1)",
		"INSERT INTO LOADSTONE_CHECK_STANDARD (ID, V) VALUES (1, 0.2)")},
	{"standard.rollback", "A transaction that is rolled back leaves nothing.", "standard.create", rolledBack},
	{"transactions.named", "Another session sees an open transaction by its name.", "", namedTransaction},
	{"transactions.abort", "SYSTEM$ABORT_TRANSACTION ends a transaction of another session.", "transactions.named",
		abortedTransaction},
	{
		"standard.generator",
		"GENERATOR makes rows with SEQ8 from 0, without gaps under ROW_NUMBER.",
		"session.schema",
		value("5050",
			"SELECT SUM(n) FROM (SELECT ROW_NUMBER() OVER (ORDER BY SEQ8()) AS n FROM TABLE(GENERATOR(ROWCOUNT => 100)))"),
	},
	{"standard.swap", "SWAP WITH exchanges standard tables.", "standard.create", executed(
		"CREATE TABLE LOADSTONE_CHECK_OTHER (ID NUMBER(18,0))",
		"ALTER TABLE LOADSTONE_CHECK_STANDARD SWAP WITH LOADSTONE_CHECK_OTHER")},
	{"standard.sample", "SAMPLE BERNOULLI takes a SEED.", "standard.create", executed(
		"SELECT COUNT(*) FROM LOADSTONE_CHECK_STANDARD SAMPLE BERNOULLI (50) SEED (1)")},
	{"results.alter", "CREATE OR ALTER TABLE adds a column and keeps the rows.", "session.schema", altered},
	{"results.types", "INFORMATION_SCHEMA.COLUMNS has types as NUMBER with precision and scale, and whether NULL may be.",
		"results.alter", value("NUMBER 18 0 NO,VARIANT YES", "SELECT LISTAGG(DATA_TYPE || CASE DATA_TYPE WHEN 'NUMBER' THEN "+
			"' ' || NUMERIC_PRECISION || ' ' || NUMERIC_SCALE ELSE '' END || ' ' || IS_NULLABLE, ',') WITHIN GROUP (ORDER BY "+
			"ORDINAL_POSITION) FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = CURRENT_SCHEMA() AND TABLE_NAME = "+
			"'LOADSTONE_CHECK_ALTERED'")},
	{"results.json", "PARSE_JSON of a bound text and FLATTEN make rows.", "session.schema", value("2 0.1",
		"SELECT COUNT(*) || ' ' || MIN(f.VALUE:c0::FLOAT) FROM TABLE(FLATTEN(INPUT => PARSE_JSON(?))) f",
		`[{"c0":0.1},{"c0":2,"c1":null}]`)},
	{"results.digits", "A VARIANT keeps 17 digits of a number.", "session.schema", value("0.12345678901234567",
		"SELECT TO_JSON(PARSE_JSON(?))", "0.12345678901234567")},
	{"results.micros", "TO_TIMESTAMP_NTZ of microseconds is exact.", "session.schema", value("2026-11-22 12:00:00.123456",
		"SELECT TO_CHAR(TO_TIMESTAMP_NTZ(1795348800123456, 6), 'YYYY-MM-DD HH24:MI:SS.FF6')")},
	{"hybrid.create", "The role may make a hybrid table, and the account has them.", "session.schema", executed(
		"CREATE HYBRID TABLE LOADSTONE_CHECK_HYBRID (ID NUMBER(18,0) NOT NULL, V VARCHAR, PRIMARY KEY (ID), "+
			"INDEX LOADSTONE_CHECK_IX (V))", "INSERT INTO LOADSTONE_CHECK_HYBRID (ID, V) VALUES (1, 'a')")},
	{"hybrid.keys", "A duplicate key of a hybrid table is error 200001.", "hybrid.create", refused(
		"INSERT INTO LOADSTONE_CHECK_HYBRID (ID, V) VALUES (1, 'b')", "200001")},
	{"hybrid.swap", "SWAP WITH exchanges hybrid tables.", "hybrid.create", executed(
		"CREATE HYBRID TABLE LOADSTONE_CHECK_HYBRID2 (ID NUMBER(18,0) NOT NULL, PRIMARY KEY (ID))",
		"ALTER TABLE LOADSTONE_CHECK_HYBRID SWAP WITH LOADSTONE_CHECK_HYBRID2")},
	{"hybrid.comment", "A hybrid table takes a comment.", "hybrid.create", executed(
		"COMMENT ON TABLE LOADSTONE_CHECK_HYBRID IS 'Loadstone check'")},
	{
		"interactive.create",
		"The role may make an interactive table, and the account has them.",
		"standard.create",
		executed(
			"CREATE INTERACTIVE TABLE LOADSTONE_CHECK_INTERACTIVE CLUSTER BY (ID) AS SELECT 1 AS ID, 'a' AS V"),
	},
	{"interactive.comment", "An interactive table takes a comment.", "interactive.create", executed(
		"COMMENT ON TABLE LOADSTONE_CHECK_INTERACTIVE IS 'Loadstone check'")},
	{"interactive.merge", "MERGE into an interactive table is refused.", "interactive.create", refused(
		"MERGE INTO LOADSTONE_CHECK_INTERACTIVE t USING (SELECT 1 AS ID, 'c' AS V) s ON t.ID = s.ID " +
			"WHEN MATCHED THEN UPDATE SET V = s.V")},
	{"interactive.update", "UPDATE of an interactive table is refused.", "interactive.create", refused(
		"UPDATE LOADSTONE_CHECK_INTERACTIVE SET V = 'b' WHERE ID = 1")},
	{"interactive.delete", "DELETE from an interactive table is refused.", "interactive.create", refused(
		"DELETE FROM LOADSTONE_CHECK_INTERACTIVE WHERE ID = 1")},
	{"errors.syntax", "A syntax error is 001003.", "", refused("SELEC 1", "001003")},
	{"errors.missing", "An object that is not there is 002003.", "session.schema", refused(
		"SELECT 1 FROM LOADSTONE_CHECK_NOT_THERE", "002003")},
	{"errors.length", "A text that is too long for its column is 100078.", "standard.create", tooLong},
}

// sessionParameter asks for a parameter of the session.
func sessionParameter(name, want string) func(context.Context, *Checker) (bool, string, error) {
	return func(ctx context.Context, c *Checker) (bool, string, error) {
		rs, err := c.db.Query(ctx, "SHOW PARAMETERS LIKE '"+name+"' IN SESSION")
		if err != nil {
			return false, "", err
		}
		at := columnAt(rs, "value")
		if at < 0 || len(rs.Rows) != 1 {
			return false, fmt.Sprintf("%d rows", len(rs.Rows)), nil
		}
		got := fmt.Sprint(rs.Rows[0][at])
		if strings.EqualFold(got, want) {
			return true, "", nil
		}
		return false, got, nil
	}
}

// errUndo ends a transaction of a probe.
var errUndo = errors.New("undone by the check")

// inTransaction runs f in a transaction, which is undone when f does not fail.
func (c *Checker) inTransaction(ctx context.Context, name string, f func(target.Tx) error) error {
	stager, ok := c.db.(target.Stager)
	if !ok {
		return &UncheckedError{"the driver has no transactions"}
	}
	err := stager.InTransaction(ctx, c.Name(name), func(t target.Tx) error {
		if err := f(t); err != nil {
			return err
		}
		return errUndo
	})
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}

func rolledBack(ctx context.Context, c *Checker) (bool, string, error) {
	const count = "SELECT COUNT(*) FROM LOADSTONE_CHECK_STANDARD"
	before, err := c.one(ctx, count)
	if err != nil {
		return false, "", err
	}
	if err := c.inTransaction(ctx, "ROLLBACK", func(t target.Tx) error {
		return t.Exec(ctx, c.own("INSERT INTO LOADSTONE_CHECK_STANDARD (ID, V) VALUES (7, 7)"))
	}); err != nil {
		return false, "", err
	}
	after, err := c.one(ctx, count)
	if after == before {
		return true, "", err
	}
	return false, before + " rows became " + after, err
}

// shownTransaction asks whether others see an open transaction by its name, and gives its number.
func (c *Checker) shownTransaction(ctx context.Context, name string) (id string, err error) {
	rs, err := c.db.Query(ctx, "SHOW TRANSACTIONS")
	if err != nil {
		return "", err
	}
	number, named := columnAt(rs, "id"), columnAt(rs, "name")
	if number < 0 || named < 0 {
		return "", nil
	}
	for _, row := range rs.Rows {
		if strings.EqualFold(fmt.Sprint(row[named]), name) {
			return fmt.Sprint(row[number]), nil
		}
	}
	return "", nil
}

func namedTransaction(ctx context.Context, c *Checker) (held bool, found string, err error) {
	err = c.inTransaction(ctx, "NAMED", func(target.Tx) error {
		id, err := c.shownTransaction(ctx, c.Name("NAMED"))
		if held = id != ""; !held {
			found = "SHOW TRANSACTIONS does not list it with id and name"
		}
		return err
	})
	return held, found, err
}

func abortedTransaction(ctx context.Context, c *Checker) (held bool, found string, err error) {
	err = c.inTransaction(ctx, "ABORTED", func(t target.Tx) error {
		id, err := c.shownTransaction(ctx, c.Name("ABORTED"))
		if err != nil {
			return err
		}
		if _, err := strconv.ParseInt(id, 10, 64); err != nil {
			return &UncheckedError{"its id is no number"}
		}
		if _, err := c.db.Query(ctx, "SELECT SYSTEM$ABORT_TRANSACTION("+id+")"); err != nil {
			return err
		}
		still, err := t.Query(ctx, "SELECT CURRENT_TRANSACTION()")
		if held = err != nil || len(still.Rows) != 1 || fmt.Sprint(still.Rows[0][0]) != id; !held {
			found = "the transaction went on"
		}
		return nil
	})
	return held, found, err
}

func altered(ctx context.Context, c *Checker) (bool, string, error) {
	if err := c.exec(ctx, "CREATE OR ALTER TABLE LOADSTONE_CHECK_ALTERED (A NUMBER(18,0) NOT NULL) COMMENT = 'one'",
		"INSERT INTO LOADSTONE_CHECK_ALTERED (A) VALUES (7)",
		"CREATE OR ALTER TABLE LOADSTONE_CHECK_ALTERED (A NUMBER(18,0) NOT NULL, B VARIANT) COMMENT = 'two'"); err != nil {
		return false, "", err
	}
	return value("7 0", "SELECT MIN(A) || ' ' || COUNT(B) FROM LOADSTONE_CHECK_ALTERED")(ctx, c)
}

// warehouseParameters asks for the fallback warehouse where polls do.
func warehouseParameters(ctx context.Context, c *Checker) (bool, string, error) {
	name, err := c.one(ctx, "SELECT CURRENT_WAREHOUSE()")
	if err != nil {
		return false, "", err
	}
	return listed("SHOW PARAMETERS IN WAREHOUSE "+quoteName(name), "key", "value", "level")(ctx, c)
}

// userHistory asks for the history as enrichment does: of a database by its name, for the session's user and a time.
func userHistory(ctx context.Context, c *Checker) (bool, string, error) {
	name, err := c.one(ctx, "SELECT CURRENT_DATABASE()")
	if err != nil {
		return false, "", err
	}
	return listed("SELECT * FROM TABLE("+quoteName(name)+".INFORMATION_SCHEMA.QUERY_HISTORY_BY_USER("+
		"END_TIME_RANGE_START => DATEADD('minute', -5, CURRENT_TIMESTAMP()), RESULT_LIMIT => 1))",
		"QUERY_ID", "TOTAL_ELAPSED_TIME", "COMPILATION_TIME", "EXECUTION_TIME", "QUEUED_OVERLOAD_TIME",
		"QUEUED_PROVISIONING_TIME", "QUEUED_REPAIR_TIME", "TRANSACTION_BLOCKED_TIME", "CLUSTER_NUMBER", "EXECUTION_STATUS",
		"WAREHOUSE_NAME")(ctx, c)
}

// tooLong asks for the error of a text that its column does not take.
func tooLong(ctx context.Context, c *Checker) (bool, string, error) {
	if err := c.exec(ctx, "CREATE TABLE LOADSTONE_CHECK_SHORT (V VARCHAR(2))"); err != nil {
		return false, "", err
	}
	return refused("INSERT INTO LOADSTONE_CHECK_SHORT (V) VALUES ('abc')", "100078")(ctx, c)
}
