package snowflake

import (
	"context"
	"fmt"
	"strings"
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
	{"history.columns", "QUERY_HISTORY has the columns that enrichment reads.", "session.schema", listed(
		"SELECT * FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(RESULT_LIMIT => 1))", "QUERY_ID", "TOTAL_ELAPSED_TIME",
		"COMPILATION_TIME", "EXECUTION_TIME", "QUEUED_OVERLOAD_TIME", "QUEUED_PROVISIONING_TIME", "QUEUED_REPAIR_TIME",
		"TRANSACTION_BLOCKED_TIME", "CLUSTER_NUMBER", "EXECUTION_STATUS", "WAREHOUSE_NAME")},
	{"history.aggregates", "The role may read ACCOUNT_USAGE.AGGREGATE_QUERY_HISTORY.", "", executed(
		"SELECT 1 FROM SNOWFLAKE.ACCOUNT_USAGE.AGGREGATE_QUERY_HISTORY LIMIT 1")},
	{"standard.create", "The role may make a standard table.", "session.schema", executed(
		"CREATE TABLE LOADSTONE_CHECK_STANDARD (ID NUMBER(18,0) NOT NULL, V FLOAT, PRIMARY KEY (ID))")},
	{"standard.keys", "A primary key of a standard table is not enforced.", "standard.create", executed(
		"INSERT INTO LOADSTONE_CHECK_STANDARD (ID, V) VALUES (1, 0.1)",
		"INSERT INTO LOADSTONE_CHECK_STANDARD (ID, V) VALUES (1, 0.2)")},
	{"standard.rollback", "A transaction that is rolled back leaves nothing.", "standard.create", rolledBack},
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
	{"interactive.update", "UPDATE of an interactive table is refused.", "interactive.create", refused(
		"UPDATE LOADSTONE_CHECK_INTERACTIVE SET V = 'b' WHERE ID = 1")},
	{"interactive.delete", "DELETE from an interactive table is refused.", "interactive.create", refused(
		"DELETE FROM LOADSTONE_CHECK_INTERACTIVE WHERE ID = 1")},
	{"errors.syntax", "A syntax error is 001003.", "", refused("SELEC 1", "001003")},
	{"errors.missing", "An object that is not there is 002003.", "session.schema", refused(
		"SELECT 1 FROM LOADSTONE_CHECK_NOT_THERE", "002003")},
	{"errors.length", "A text that is too long for its column is 100078.", "standard.create", func(ctx context.Context,
		c *checker) (bool, string, error) {
		if err := c.db.Exec(ctx, "CREATE TABLE LOADSTONE_CHECK_SHORT (V VARCHAR(2))"); err != nil {
			return false, "", err
		}
		return refused("INSERT INTO LOADSTONE_CHECK_SHORT (V) VALUES ('abc')", "100078")(ctx, c)
	}},
}

// sessionParameter asks for a parameter of the session.
func sessionParameter(name, want string) func(context.Context, *checker) (bool, string, error) {
	return func(ctx context.Context, c *checker) (bool, string, error) {
		rs, err := c.db.Query(ctx, "SHOW PARAMETERS LIKE '"+name+"' IN SESSION")
		if err != nil {
			return false, "", err
		}
		at := -1
		for i, column := range rs.Columns {
			if strings.EqualFold(column, "value") {
				at = i
			}
		}
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

func rolledBack(ctx context.Context, c *checker) (bool, string, error) {
	const count = "SELECT COUNT(*) FROM LOADSTONE_CHECK_STANDARD"
	before, err := c.one(ctx, count)
	if err != nil {
		return false, "", err
	}
	if err := c.db.Exec(
		ctx,
		"BEGIN",
		"INSERT INTO LOADSTONE_CHECK_STANDARD (ID, V) VALUES (7, 7)",
		"ROLLBACK",
	); err != nil {
		return false, "", err
	}
	after, err := c.one(ctx, count)
	if after == before {
		return true, "", err
	}
	return false, before + " rows became " + after, err
}

func altered(ctx context.Context, c *checker) (bool, string, error) {
	if err := c.db.Exec(ctx, "CREATE OR ALTER TABLE LOADSTONE_CHECK_ALTERED (A NUMBER(18,0) NOT NULL) COMMENT = 'one'",
		"INSERT INTO LOADSTONE_CHECK_ALTERED (A) VALUES (7)",
		"CREATE OR ALTER TABLE LOADSTONE_CHECK_ALTERED (A NUMBER(18,0) NOT NULL, B VARIANT) COMMENT = 'two'"); err != nil {
		return false, "", err
	}
	return value("7 0", "SELECT MIN(A) || ' ' || COUNT(B) FROM LOADSTONE_CHECK_ALTERED")(ctx, c)
}
