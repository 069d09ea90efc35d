package translate

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

var update = flag.Bool("update", false, "write the golden results")

// TestGolden runs the statements of testdata/golden/*.sql on a real Postgres and
// compares what comes back. A case is a statement, a line "----", and its result
// or its error; a blank line ends it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := newClient(t, Denied{Role: "SYSADMIN", Privilege: "DELETE", Object: "GUARDED"})
			var out strings.Builder
			for _, block := range strings.Split(strings.TrimRight(string(content), "\n"), "\n\n") {
				if strings.HasPrefix(block, "--!") { // a heading
					out.WriteString(block + "\n\n")
					continue
				}
				sql, want, _ := strings.Cut(block+"\n", "\n----\n")
				sql = strings.TrimSuffix(sql, "\n")
				got := ""
				r, err := c.exec(sql)
				var known *protocol.Error
				switch {
				case errors.As(err, &known):
					got = "error " + known.Code + " (" + known.State + "): " + strings.ReplaceAll(known.Message, "\n", `\n`) + "\n"
				case err != nil:
					t.Fatalf("%s\n%v is no error of Snowflake's", sql, err)
				default:
					got = printed(r)
				}
				if !*update && got != want {
					t.Errorf("%s\ngot\n%swant\n%s", sql, got, want)
				}
				out.WriteString(sql + "\n----\n" + got + "\n")
			}
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
