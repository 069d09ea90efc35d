package sqltext_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// insides are texts that mean something else outside of quotes and comments.
var insides = []string{"", ";", "a", ":b", "$1", "--", "/*", "*/", "'", `"`, "$$", "$x$", `\`, "\n", " ", "ü", "//",
	"BEGIN"}

// checkTokens: tokens stand in order, do not overlap, are what the text has there, and
// nothing but white space and comments lies between them.
func checkTokens(t *testing.T, sql string, dialect sqltext.Dialect, tokens []sqltext.Token) {
	t.Helper()
	at := 0
	blank := func(gap string) {
		if strings.Trim(gap, " \t\r\n\f\v") == "" {
			return
		}
		// What was passed over is passed over again, by itself.
		if rest, err := sqltext.Tokens(gap, dialect); err != nil || len(rest) > 0 {
			t.Fatalf("%q: %q was passed over, which is %v %v", sql, gap, rest, err)
		}
		if !strings.Contains(gap, "--") && !strings.Contains(gap, "/*") && !strings.Contains(gap, "//") {
			t.Fatalf("%q: %q was passed over and is no comment", sql, gap)
		}
	}
	for _, token := range tokens {
		if token.At < at || token.End <= token.At || token.End > len(sql) || sql[token.At:token.End] != token.Text {
			t.Fatalf("%q: token %+v after byte %d", sql, token, at)
		}
		blank(sql[at:token.At])
		at = token.End
	}
	blank(sql[at:])
}

// FuzzTokens: the lexer takes any text, in both dialects, ends, and either says where
// it cannot go on or covers the text with tokens.
func FuzzTokens(f *testing.F) {
	for _, sql := range []string{"select :a::text", "/* /* */ */ x", "$a$ $b$ $a$", "E'\\'' 'a''b' \"a\"\"b\"", "a$b$c",
		"$1$2$", "e'", "E'\\", "$$", "-- x\r\ny", "// x\ny", "/*/", "a\x00b", "'\\'", "::=:=:", "ü$ü$ü$ü$", "U&'d\\0061'",
		"1.5e10", "a;;b;"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		for _, dialect := range []sqltext.Dialect{sqltext.Postgres, sqltext.Snowflake} {
			tokens, err := sqltext.Tokens(sql, dialect)
			if err != nil {
				var at *sqltext.Error
				if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 || len(tokens) > 0 {
					t.Fatalf("%q: %v", sql, err)
				}
				continue
			}
			checkTokens(t, sql, dialect, tokens)
			// Statements lose nothing but semicolons.
			n := 0
			for _, s := range sqltext.Statements(tokens) {
				n += len(s)
				for _, token := range s {
					if token.Is(";") {
						t.Fatalf("%q: a semicolon in %v", sql, s)
					}
				}
			}
			for _, token := range tokens {
				if token.Is(";") {
					n++
				}
			}
			if n != len(tokens) {
				t.Fatalf("%q: %d of %d tokens are in statements", sql, n, len(tokens))
			}
		}
	})
}

// TestWhatIsQuotedIsOneToken: whatever stands in quotes or comments is one token, or none.
func TestWhatIsQuotedIsOneToken(t *testing.T) {
	for _, a := range insides {
		for _, b := range insides {
			inside := a + b
			for _, c := range []struct {
				sql     string
				dialect sqltext.Dialect
				tokens  int
				fits    bool
			}{
				{"'" + strings.ReplaceAll(inside, "'", "''") + "'", sqltext.Postgres, 1, true},
				{"E'" + strings.NewReplacer("'", `\'`, `\`, `\\`).Replace(inside) + "'", sqltext.Postgres, 1, true},
				{"'" + strings.NewReplacer("'", `\'`, `\`, `\\`).Replace(inside) + "'", sqltext.Snowflake, 1, true},
				{`"` + strings.ReplaceAll(inside, `"`, `""`) + `"`, sqltext.Postgres, 1, true},
				{"$tag$" + inside + "$tag$", sqltext.Postgres, 1, true},
				{"$$" + inside + "$$", sqltext.Snowflake, 1, !strings.Contains(inside, "$")},
				{"/*" + inside + "*/", sqltext.Postgres, 0, !strings.ContainsAny(inside, "*/")},
				{"/*" + inside + "*/", sqltext.Snowflake, 0, !strings.ContainsAny(inside, "*/")},
				{"--" + inside, sqltext.Postgres, 0, !strings.Contains(inside, "\n")},
				{"//" + inside, sqltext.Snowflake, 0, !strings.Contains(inside, "\n")},
			} {
				if !c.fits {
					continue
				}
				sql := "x " + c.sql + "\n;y"
				tokens, err := sqltext.Tokens(sql, c.dialect)
				if err != nil || len(tokens) != 3+c.tokens || tokens[len(tokens)-1].Text != "y" || c.tokens == 1 &&
					tokens[1].Text != c.sql {
					t.Fatalf("%q: %v %v", sql, tokens, err)
				}
				checkTokens(t, sql, c.dialect, tokens)
			}
		}
	}
}

// TestWhatPostgresReads: texts and calls that end elsewhere than they seem to.
func TestWhatPostgresReads(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"E'a'\n'\\' b' c": "E'a'\n'\\' b'|c", "e'a' -- x'\r -- y\n\t'\\'' c": "e'a' -- x'\r -- y\n\t'\\''|c",
		"E'a' '\\' c": "E'a'|'\\'|c", "E'a' /* */\n '\\' c": "E'a'|'\\'|c", "'a'\n'\\' c": "'a'|'\\'|c", "E'a' -- x": "E'a'",
		"[1:E'\\'' a": "[|1|:|E'\\''|a", "[1:e]": "[|1|:e|]", "E'a'\n'b'\n'\\''": "E'a'\n'b'\n'\\''",
	} {
		tokens, err := sqltext.Tokens(sql, sqltext.Postgres)
		var got []string
		for _, token := range tokens {
			got = append(got, token.Text)
		}
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%q is read as %q, %v, want %q", sql, strings.Join(got, "|"), err, want)
		}
	}
}
