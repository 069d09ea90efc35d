package translate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// What the bundled Snowflake adapters write, as their golden files have it, is
// understood: no statement is a syntax error, unknown or unsupported.
func TestAdaptersAreUnderstood(t *testing.T) {
	files, err := filepath.Glob("../../plugins/adapters/snowflake/testdata/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("the adapters' golden files: %v, %v", files, err)
	}
	c := newClient(t)
	c.schema("BENCH", "SALES")
	c.must("CREATE WAREHOUSE load_wh")
	c.must("CREATE TABLE bench.sales.customers (id INT PRIMARY KEY, name VARCHAR)")
	c.must(`CREATE TABLE bench.sales."My ""Orders""; DROP TABLE x_%\'" (id INT PRIMARY KEY, place VARCHAR)`)
	n := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(content), "\n") {
			sql := line
			if i := strings.LastIndex(line, " -- "); i > 0 {
				sql = line[:i]
			}
			first, _, _ := strings.Cut(sql, " ")
			if !strings.Contains(" SELECT INSERT UPDATE DELETE MERGE CREATE ALTER DROP SHOW USE DESCRIBE WITH ", " "+first+" ") {
				continue
			}
			if strings.Contains(sql, "GENERATOR") { // as many rows take too long here
				sql = strings.NewReplacer("ROWCOUNT => 1000000", "ROWCOUNT => 100", "ROWCOUNT => 500000", "ROWCOUNT => 100").
					Replace(sql)
			}
			var binds []protocol.Bind
			for range strings.Count(sql, "?") {
				binds = append(binds, bind("text", "7"))
			}
			n++
			_, err := c.exec(sql, binds...)
			var known *protocol.Error
			if err == nil {
				continue
			}
			if !errors.As(err, &known) ||
				strings.Contains(" 001003 000002 002140 002141 000938 000939 001044 ", " "+known.Code+" ") {
				t.Errorf("%s: %s\n%v", filepath.Base(file), sql, err)
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d statements were found in %v", n, files)
	}
}
