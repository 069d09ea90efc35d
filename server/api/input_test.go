package api

import (
	"encoding/json"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzCheckJSON holds that what passes is JSON that encoding/json reads too.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}]}`, `{"a":1,"a":2}`, `{"a":1e400}`, "{\"a\":\"\\u0000\"}", `[`, ``, `{}{}`, `{"a" 1}`, `"x"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		err := json.Unmarshal(text, &v)
		if p := CheckJSON(text); p == nil && err != nil {
			t.Fatalf("%q passed, and cannot be read: %v", text, err)
		} else if p != nil && p.Status != 400 && (p.Status != 422 || len(p.Errors) == 0) {
			t.Fatalf("%q: %+v", text, p)
		}
	})
}

// TestJSONCostsWhatItWeighs checks bodies whose paths would be far larger than they are.
func TestJSONCostsWhatItWeighs(t *testing.T) {
	many := "[" + strings.Repeat("1,", 40_000) + "1]"
	for name, c := range map[string]struct{ text, field string }{
		"a long name":        {`{"` + strings.Repeat("k", 256<<10) + `":` + many + `}`, "body"},
		"names of the limit": {strings.Repeat(`{"`+strings.Repeat("k", maxName)+`":`, 60) + many + strings.Repeat("}", 60), ""},
		"too many values":    {`{"a":[` + strings.Repeat("1,", 500_000) + `1]}`, "body"},
		"too many members":   {`{"a":{` + strings.Repeat(`"b":{},`, 2) + `"c":1}}`, "a.b"},
		"a deep error":       {strings.Repeat(`{"`+strings.Repeat("k", maxName)+`":`, 60) + `"\u0000"` + strings.Repeat("}", 60), strings.Repeat("k", maxShown) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p := CheckJSON([]byte(c.text))
			runtime.ReadMemStats(&after)
			if cost := after.TotalAlloc - before.TotalAlloc; cost > uint64(8<<20+8*len(c.text)) {
				t.Errorf("%d bytes took %d MB", len(c.text), cost>>20)
			}
			switch {
			case c.field == "" && p != nil, c.field != "" && p == nil:
				t.Fatalf("problem %+v", p)
			case p != nil && p.Errors[0].Field != c.field:
				t.Errorf("it blames %.100s", p.Errors[0].Field)
			}
		})
	}
}

// TestRedactionHidesEveryPassword makes DSNs of both forms around a secret.
func TestRedactionHidesEveryPassword(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{1,8}`)
		secret := "Zq9" + rapid.StringMatching(`[A-Za-z0-9!$%&*:;+,.~@_-]{0,12}`).Draw(t, "secret") + "9qZ"
		host, user, db := word.Draw(t, "host"), word.Draw(t, "user"), word.Draw(t, "db")
		form := rapid.IntRange(0, 8).Draw(t, "form")
		escaped := url.QueryEscape(secret)
		dsn := []string{
			"postgres://" + user + ":" + secret + "@" + host + ":5432/" + db + "?sslmode=require",
			"host=" + host + " user=" + user + " password='" + secret + "' dbname=" + db,
			"password='" + secret + " \\' more' host=" + host,
			"postgres://" + host + "/" + db + "?user=" + user + "&password=" + strings.NewReplacer("&", "%26", ";", "%3B", "+", "%2B").Replace(secret),
			"postgres://" + user + ":" + secret + "@/" + db + "?host=/tmp&sslpassword=" + strings.NewReplacer("&", "%26", ";", "%3B", "+", "%2B").Replace(secret),
			"snowflake://" + user + ":" + escaped + "@" + host + "/" + db + "?warehouse=w&role=r",
			user + ":" + escaped + "@" + host + "/" + db + "?warehouse=w",
			"snowflake://" + user + "@" + host + "?authenticator=snowflake_jwt&private_key=" + escaped + "&private_key_passphrase=" + escaped + "&role=r",
			"snowflake://" + user + ":" + escaped + "@" + host + "?token=" + escaped + "&privateKey=" + escaped,
		}[form]
		shown := RedactDSN(dsn)
		if strings.Contains(shown, "Zq9") || strings.Contains(shown, "9qZ") || strings.Contains(shown, "more'") {
			t.Fatalf("%s is shown as %s", dsn, shown)
		}
		if !redacted(shown) || RedactDSN(shown) != shown {
			t.Fatalf("%s is shown as %s, which is not stable", dsn, shown)
		}
		if joined, err := rejoin(shown, dsn); err != nil || joined != dsn {
			t.Fatalf("%s came back as %s, %v", dsn, joined, err)
		}
	})
}

func TestPlainDSNsAreShownAsTheyAre(t *testing.T) {
	for _, dsn := range []string{"postgres://h/d", "host=/tmp/sock dbname=d user=u", "postgres://u@h:5432/d?sslmode=disable&application_name=a@b", ""} {
		if got := RedactDSN(dsn); got != dsn || redacted(got) {
			t.Errorf("%q is shown as %q", dsn, got)
		}
	}
}

func TestThePasswordGoesNowhereElse(t *testing.T) {
	const stored = "postgres://u:secret@h:5432/d"
	for dsn, ok := range map[string]bool{
		"postgres://u:***@h:5432/e":                     true,
		"postgres://u:***@h:5432/d?application_name=x":  true,
		"postgres://u:***@h:5433/d":                     false,
		"postgres://u:***@evil,h:5432/d":                false,
		"postgres://u:***@h:5432/d?host=evil":           false,
		"postgres://u:***@h:5432/d?HOST=evil":           false,
		"postgres://u:***@h:5432/d?%68ost=evil":         false,
		"postgres://u:***@h:5432/d?sslmode=disable":     false,
		"postgres://other:***@h:5432/d":                 false,
		"host=h port=5432 user=u password=*** dbname=d": false,
		"host=evil user=u password=*** dbname=d":        false,
		"postgres://u:***@evil/d?x=@h:5432/d":           false,
		"postgresql+evil://u:***@h:5432/d":              false,
	} {
		if joined, err := rejoin(dsn, stored); (err == nil) != ok || ok && !strings.Contains(joined, ":secret@h:5432/") {
			t.Errorf("%s became %q, %v", dsn, joined, err)
		}
	}
	key := "snowflake://u@acme/d?private_key=secret&private_key_passphrase=other"
	for dsn, ok := range map[string]bool{
		"snowflake://u@acme/e?private_key=***&private_key_passphrase=***&role=r":           true,
		"snowflake://u@evil/d?private_key=***&private_key_passphrase=***":                  false,
		"snowflake://u@acme/d?private_key=***&private_key_passphrase=***&host=evil":        false,
		"snowflake://u@acme/d?private_key=***&private_key_passphrase=***&account=evil":     false,
		"snowflake://u@acme/d?private_key=***&private_key_passphrase=***&protocol=http":    false,
		"snowflake://v@acme/d?private_key=***&private_key_passphrase=***":                  false,
		"snowflake://u@acme/d?private_key=***&private_key_passphrase=***&role=r&token=***": false,
	} {
		if joined, err := rejoin(dsn, key); (err == nil) != ok || ok && !strings.Contains(joined, "private_key=secret&private_key_passphrase=other") {
			t.Errorf("%s became %q, %v", dsn, joined, err)
		}
	}
	kv := "host=h user=u password=secret dbname=d"
	if joined, err := rejoin("host=h user=u password=*** dbname=e", kv); err != nil || joined != "host=h user=u password=secret dbname=e" {
		t.Errorf("joined %q, %v", joined, err)
	}
	if _, err := rejoin("host=evil user=u password=*** dbname=d", kv); err == nil {
		t.Error("the password would go to another host")
	}
}
