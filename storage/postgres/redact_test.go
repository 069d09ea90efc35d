package postgres

import (
	"encoding/json"
	"testing"
)

func TestRedact(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://ada:pw@host/db":                                              "postgres://ada:***@host/db",
		"postgres://ada:p@w@host/db":                                             "postgres://ada:***@host/db",
		"postgres://ada:p/w@host/db":                                             "postgres://ada:***@host/db",
		"postgres://ada:p?w@host/db":                                             "postgres://ada:***@host/db",
		"postgres://ada@host/db":                                                 "postgres://ada@host/db",
		"postgres://host:5432/db":                                                "postgres://host:5432/db",
		"postgres://host/db?application_name=a@b:c":                              "postgres://host/db?application_name=a@b:c",
		"postgres:///db?host=/tmp&password=pw&user=u":                            "postgres:///db?host=/tmp&password=***&user=u",
		"postgres://u:pw@h/db?sslpassword=x#f":                                   "postgres://u:***@h/db?sslpassword=***#f",
		"host=h password=pw user=u":                                              "host=h password=*** user=u",
		"host=h PASSWORD = pw":                                                   "host=h PASSWORD = ***",
		`password='p w\' x' host=h`:                                              `password=*** host=h`,
		`password=p\ w host=h`:                                                   `password=*** host=h`,
		`password='never closed host=h`:                                          `password=***`,
		"host=h user=u dbname=password":                                          "host=h user=u dbname=password",
		"user:pw@account/db?warehouse=w":                                         "user:***@account/db?warehouse=w",
		"user:pw@account/db?token=t&privateKey=k&x=1":                            "user:***@account/db?token=***&privateKey=***&x=1",
		"snowflake://u@a/db?private_key=MII%2B&private_key_passphrase=pp&role=R": "snowflake://u@a/db?private_key=***&private_key_passphrase=***&role=R",
		"snowflake://u:p%40w@a/db?warehouse=w":                                   "snowflake://u:***@a/db?warehouse=w",
		"host='/tmp/a' user=loadstone dbname='x'":                                "host='/tmp/a' user=loadstone dbname='x'",
		"": "",
	} {
		if got := redact(dsn); got != want {
			t.Errorf("redact(%q) = %q, want %q", dsn, got, want)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("postgres://ada:pw@host/db?password=x")
	f.Add("host=h password='p w' sslpassword=x")
	f.Add("a:b@c")
	f.Fuzz(func(t *testing.T, dsn string) {
		once := redact(dsn)
		if twice := redact(once); twice != once {
			t.Errorf("redact(%q) = %q, and again %q", dsn, once, twice)
		}
		if source := redactSource("dsn: "+dsn, dsn); source != "dsn: "+dsn && once == dsn {
			t.Errorf("a DSN without a password changed its document: %q", source)
		}
	})
}

func FuzzWithoutNUL(f *testing.F) {
	f.Add(`{"a":"x\u0000y","b":"c:\\u0000"}`)
	f.Fuzz(func(t *testing.T, text string) {
		raw := detail([]byte(text))
		if !json.Valid(raw) {
			t.Errorf("detail(%q) = %q is not JSON", text, raw)
		}
	})
}
