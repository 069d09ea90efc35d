package slt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples runs the test files that come with the program.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../../examples/streams/*.slt")
	if err != nil || len(files) < 4 {
		t.Fatalf("there are %d files: %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			if n, err := Run(t.Context(), f); err != nil || n == 0 {
				t.Errorf("%d records, %v", n, err)
			}
		})
	}
}

// TestWhatIsWrongIsFound: a file fails at the line where it is wrong.
func TestWhatIsWrongIsFound(t *testing.T) {
	prologue := "file a.csv\n1,2\n\nstatement ok\nCREATE LOGICAL SOURCE a(ts INT64, x INT64);\n" +
		"CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);\n" +
		"CREATE SINK s TYPE PRINT\n\n"
	for _, c := range []struct{ text, says string }{
		{"query\nSELECT x FROM a INTO s\n----\n3\n", "row 1 is"},
		{"query\nSELECT x FROM a INTO s\n----\n", "row 1 is"},
		{"query\nSELECT x FROM a INTO s\n----\n2\n2\n", "row 2 is"},
		{"statement ok\nSELECT y FROM a INTO s\n", "BinderError"},
		{"statement error BinderError\nSELECT x FROM a INTO s\n", "it was accepted"},
		{"statement error BinderError\nSELEC\n", "another error"},
		{"statement error BinderError\nSELECT y FROM a INTO s\n----\nno such words\n", "does not say"},
		{"nonsense\n", "a record begins with"},
		{"statement ok\nSELECT x FROM a INTO s\n\ncounts\nin 2\n", "in is 1, not 2"},
		{"query nearly\nSELECT x FROM a INTO s\n----\n2.03\n", "row 1 is"},
		{"query nearly\nSELECT x FROM a INTO s\n----\nNaN\n", "row 1 is"},
		{"query nearly\nSELECT x FROM a INTO s\n----\n-Infinity\n", "row 1 is"},
	} {
		file := filepath.Join(t.TempDir(), "a.slt")
		if err := os.WriteFile(file, []byte(prologue+c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Run(t.Context(), file)
		var f *FailureError
		if !errors.As(err, &f) || f.Line < 9 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// TestNearly: within a hundredth, and what is not finite only if it is the same.
func TestNearly(t *testing.T) {
	for _, c := range []struct {
		got, want string
		near      bool
	}{
		{"a,101", "a,100", true}, {"a,102", "a,100", false}, {"0", "0", true}, {"b,1", "a,1", false}, {"1,1", "1", false},
		{"NaN", "NaN", true}, {"NaN", "1", false}, {"1", "NaN", false}, {"Infinity", "Infinity", true},
		{"Infinity", "1", false}, {"1", "Infinity", false}, {"Infinity", "-Infinity", false}, {"", "NaN", false},
	} {
		if nearly(c.got, c.want) != c.near {
			t.Errorf("%s beside %s: near is %v", c.got, c.want, !c.near)
		}
	}
}
