package snowsim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// TestAnInteractiveWarehouseReadsWhatIsAttached: tables of any type, once they are
// added to it, and nothing else.
func TestAnInteractiveWarehouseReadsWhatIsAttached(t *testing.T) {
	t.Parallel()
	db := open(t, config(t, start(t, whole).DSN()))
	conn := single(t, db)
	exec(t, conn, "CREATE TABLE std (id NUMBER(38,0), note VARCHAR)")
	exec(t, conn, "CREATE HYBRID TABLE hyb (id NUMBER(38,0) PRIMARY KEY)")
	exec(t, conn, "CREATE INTERACTIVE TABLE inter CLUSTER BY (id) AS SELECT id, note FROM std")
	exec(t, conn, "USE WAREHOUSE interactive_wh")
	for _, table := range []string{"std", "hyb", "inter"} {
		query := "SELECT COUNT(*) FROM " + table
		if _, err := conn.ExecContext(t.Context(), query); err == nil ||
			!strings.Contains(err.Error(), "is not attached to the interactive warehouse") {
			t.Errorf("%s before it is added: %v", table, err)
		}
		exec(t, conn, "ALTER WAREHOUSE interactive_wh ADD TABLES ("+table+")")
		if n := number(t, conn, query); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
	if n := number(t, conn, "SELECT COUNT(*) FROM std s JOIN hyb h ON h.id = s.id"); n != 0 {
		t.Errorf("%d rows are joined", n)
	}
	for _, sql := range []string{"CREATE TABLE another (id NUMBER)", "CREATE TABLE another AS SELECT * FROM std",
		"CREATE HYBRID TABLE another (id NUMBER PRIMARY KEY)", "INSERT INTO std VALUES (1, 'x')",
		"UPDATE hyb SET id = 2", "DELETE FROM std"} {
		if _, err := conn.ExecContext(t.Context(), sql); err == nil {
			t.Errorf("an interactive warehouse executes %s", sql)
		}
	}
	exec(t, conn, "ALTER WAREHOUSE interactive_wh DROP TABLES (std)")
	if _, err := conn.ExecContext(t.Context(), "SELECT COUNT(*) FROM std"); err == nil {
		t.Error("a table that was taken away is read")
	}
	if _, err := conn.ExecContext(t.Context(), "ALTER WAREHOUSE LOADSTONE_WH ADD TABLES (std)"); err == nil {
		t.Error("a standard warehouse holds tables")
	}
}

// TestAnInteractiveWarehouseEndsAStatementAfterFiveSeconds, and another one answers
// where there is one to fall back to.
func TestAnInteractiveWarehouseEndsAStatementAfterFiveSeconds(t *testing.T) {
	t.Parallel()
	db := open(t, config(t, start(t, func(o *Options) {
		whole(o)
		o.Model.Profiles = map[warehouse.Work]warehouse.Profile{
			{Table: warehouse.Interactive, Op: warehouse.Scan}: {Compilation: time.Millisecond, Execution: 600 * time.Second,
				Share: 1, Speedup: 1}}
	}).DSN()))
	conn := single(t, db)
	exec(t, conn, "CREATE TABLE std (id NUMBER(38,0))")
	exec(t, conn, "INSERT INTO std VALUES (1)")
	exec(t, conn, "CREATE INTERACTIVE WAREHOUSE quick TABLES (std)")
	exec(t, conn, "USE WAREHOUSE quick")
	begun := time.Now()
	_, err := conn.ExecContext(t.Context(), "SELECT COUNT(*) FROM std")
	if took := time.Since(begun); code(err) != 630 || took < 5*time.Second || took > 30*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	exec(t, conn, "ALTER WAREHOUSE quick SET FALLBACK_WAREHOUSE = LOADSTONE_WH")
	begun = time.Now()
	if n := number(t, conn, "SELECT COUNT(*) FROM std"); n != 1 || time.Since(begun) < 5*time.Second {
		t.Errorf("%d rows after %v", n, time.Since(begun))
	}
	names, rows := table(t, conn, "SHOW WAREHOUSES LIKE 'QUICK'")
	shown := map[string]string{}
	for i, name := range names {
		shown[name] = rows[0][i]
	}
	if _, told := shown["fallback_warehouse"]; told || shown["auto_suspend"] != "3600" || shown["generation"] != "" ||
		!strings.Contains(shown["tables"], ".STD") {
		t.Errorf("%v", shown)
	}
	_, rows = table(t, conn, "SHOW PARAMETERS LIKE 'fallback%' IN WAREHOUSE quick")
	if len(rows) != 1 || rows[0][1] != "LOADSTONE_WH" || rows[0][3] != "WAREHOUSE" {
		t.Errorf("the fallback is told as %v", rows)
	}
	if n := number(t, conn, "SELECT COUNT(*) FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY()) WHERE QUERY_TEXT = 'SELECT "+
		"COUNT(*) FROM std' AND WAREHOUSE_NAME = 'LOADSTONE_WH'"); n != 1 {
		t.Errorf("the history has %d executions on the fallback warehouse", n)
	}
}

// TestSHOWWAREHOUSESHasTheColumnsOfTheEdition: Standard edition has nothing of clusters.
func TestSHOWWAREHOUSESHasTheColumnsOfTheEdition(t *testing.T) {
	t.Parallel()
	for _, standard := range []bool{false, true} {
		db := open(t, config(t, start(t, func(o *Options) {
			whole(o)
			o.Contract.Standard = standard
		}).DSN()))
		names, rows := table(t, db, "SHOW WAREHOUSES LIKE 'LOADSTONE_WH'")
		for _, c := range []string{"started_clusters", "min_cluster_count", "max_cluster_count", "scaling_policy"} {
			if slices.Contains(names, c) == standard {
				t.Errorf("standard %v: %v", standard, names)
			}
		}
		if len(rows) != 1 || len(rows[0]) != len(names) || rows[0][slices.Index(names, "owner")] != DefaultRole {
			t.Errorf("%v of %v", rows, names)
		}
		_, rows = table(t, db, "SHOW PARAMETERS IN WAREHOUSE loadstone_wh")
		if len(rows) != 3 || rows[0][0] != "MAX_CONCURRENCY_LEVEL" || rows[0][1] != "8" {
			t.Errorf("its parameters are %v", rows)
		}
		if _, err := db.ExecContext(t.Context(), "SHOW PARAMETERS IN WAREHOUSE nothing"); code(err) != 2003 {
			t.Errorf("a warehouse that is not there: %v", err)
		}
	}
}

func TestWarehousesHaveAGeneration(t *testing.T) {
	t.Parallel()
	db := open(t, config(t, start(t, whole).DSN()))
	exec(t, db, "CREATE WAREHOUSE newer")
	exec(t, db, "CREATE WAREHOUSE older GENERATION = '1'")
	got := map[string]string{}
	names, rows := table(t, db, "SHOW WAREHOUSES")
	for _, row := range rows {
		for i, name := range names {
			if name == "generation" {
				got[row[0]] = row[i]
			}
		}
	}
	if got["NEWER"] != "2" || got["OLDER"] != "1" || got["LOADSTONE_WH"] != "2" {
		t.Errorf("%v", got)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE WAREHOUSE w GENERATION = '3'"); err == nil {
		t.Error("a generation that there is not is taken")
	}
	if _, err := db.ExecContext(t.Context(), "CREATE INTERACTIVE WAREHOUSE w AUTO_SUSPEND = 3599"); err == nil ||
		!strings.Contains(err.Error(), "3600") {
		t.Errorf("an interactive warehouse that suspends itself within the hour: %v", err)
	}
}
