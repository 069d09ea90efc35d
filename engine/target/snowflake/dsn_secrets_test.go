package snowflake

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/target"

	"github.com/loadstone-db/loadstone/engine/base/egress"
)

func TestShownConnectionStringsHaveNoSecret(t *testing.T) {
	for dsn, want := range map[string]string{
		"snowflake://u:p%40w@acme/db?warehouse=w": "snowflake://u:***@acme/db?warehouse=w",
		"u:pw@acme/db/schema?token=t&privateKey=k": "snowflake://u:***@acme/db/schema?" +
			"token=***&private_key=***",
		"snowflake://u@acme/db?private_key=MII%2B&private_key_passphrase=pp&role=R": "snowflake://u@acme/db?" +
			"private_key=***&private_key_passphrase=***&role=R",
		"snowflake://u@acme/db": "snowflake://u@acme/db",
		"snowflake://u:a:b%40c@127.0.0.1:8085/db?account=acme&protocol=http": "snowflake://u:***@127.0.0.1:8085/" +
			"db?account=acme&protocol=http",
		"snowflake://u:a@c@acme/db": "***", "snowflake://u:a/c@acme/db": "***", "snowflake://u:a#c@acme/db": "***",
		"snowflake://u:pw@acme/db?passcode=x":      "***",
		"snowflake://u:p?w@acme/db":                "***",
		"snowflake://u:pw@acme/db?token=a&token=b": "***",
		"postgres://u:pw@acme/db":                  "***",
		"snowflake://u:pw@acme/db?%74oken=t":       "snowflake://u:***@acme/db?token=***",
	} {
		shown, _ := dsnReader{}.Redact(dsn)
		if shown != want {
			t.Errorf("%q is shown as %q, want %q", dsn, shown, want)
		}
		if again, _ := (dsnReader{}).Redact(shown); again != shown {
			t.Errorf("%q is shown as %q, and again as %q", dsn, shown, again)
		}
	}
}

func TestASavedSecretGoesNowhereElse(t *testing.T) {
	const stored = "snowflake://u@acme/d?private_key=secret&private_key_passphrase=other"
	for dsn, ok := range map[string]bool{
		"snowflake://u@acme/e?private_key=***&private_key_passphrase=***&role=r":           true,
		"snowflake://u@evil/d?private_key=***&private_key_passphrase=***":                  false,
		"snowflake://u@acme.evil/d?private_key=***&private_key_passphrase=***":             false,
		"snowflake://u@acme/d?private_key=***&private_key_passphrase=***&host=evil":        false,
		"snowflake://u@acme/d?private_key=***&private_key_passphrase=***&%68ost=evil":      false,
		"snowflake://u@acme/d?private_key=***&private_key_passphrase=***&port=1":           false,
		"snowflake://u@acme/d?private_key=***&private_key_passphrase=***&account=evil":     false,
		"snowflake://u@acme/d?private_key=***&private_key_passphrase=***&protocol=http":    false,
		"snowflake://v@acme/d?private_key=***&private_key_passphrase=***":                  false,
		"snowflake://u@acme/d?private_key=***&private_key_passphrase=***&role=r&token=***": false,
		"snowflake://u:***@acme/d?private_key=***&private_key_passphrase=***":              false,
		"snowflake://u@evil/d?role=x&private_key=***@acme":                                 false,
		"***": false,
	} {
		joined, err := dsnReader{}.RestoreSecrets(dsn, stored)
		if (err == nil) != ok || ok && !strings.Contains(joined, "private_key=secret&private_key_passphrase=other") {
			t.Errorf("%s became %q, %v", dsn, joined, err)
		}
	}
}

// TestASavedPasswordStaysWithItsSignIn: a sign-in that is written out is the one that follows from what is there; another
// one is not.
func TestASavedPasswordStaysWithItsSignIn(t *testing.T) {
	const plain, written = "snowflake://u:secret@acme/d?warehouse=w", "snowflake://u:secret@acme/d?authenticator=snowflake"
	for stored, shown := range map[string]map[string]bool{
		plain: {"snowflake://u:***@acme/d?authenticator=snowflake&warehouse=w": true,
			"snowflake://u:***@acme/d?authenticator=SNOWFLAKE": true, "snowflake://u:***@acme/d?authenticator=oauth": false,
			"snowflake://u:***@acme/d?authenticator=": false},
		written: {"snowflake://u:***@acme/e?role=r": true, "snowflake://u:***@acme/d?authenticator=oauth": false},
	} {
		for dsn, ok := range shown {
			if joined, err := (dsnReader{}).RestoreSecrets(dsn, stored); (err == nil) != ok ||
				ok && !strings.Contains(joined, "u:secret@acme") {
				t.Errorf("%s of %s became %q, %v", dsn, stored, joined, err)
			}
		}
	}
}

// FuzzSavedSecret holds that a saved secret goes to the account it was saved with, and does not come back.
func FuzzSavedSecret(f *testing.F) {
	for _, s := range []string{"snowflake://u:***@acme/e?role=r", "snowflake://u:***@evil,acme/d",
		"u:***@acme:443/d?token=***", "snowflake://u:***@acme/d?application=***"} {
		f.Add(s)
	}
	const secret = "Zq9-s3cr3t-9qZ"
	const stored = "snowflake://u:" + secret + "@acme/d?warehouse=w"
	want, err := parseDSN(stored)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, secret) {
			return
		}
		joined, err := dsnReader{}.RestoreSecrets(text, stored)
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Fatalf("the refusal of %q holds the secret: %v", text, err)
			}
			return
		}
		if shown, _ := (dsnReader{}).Redact(joined); strings.Contains(shown, secret) {
			t.Fatalf("%q comes back as %q", joined, shown)
		}
		got, err := parseDSN(joined)
		if err != nil {
			return // it connects nowhere
		}
		if got.Host != want.Host || got.Port != want.Port || got.Plain != want.Plain || got.User != want.User ||
			got.Password != secret && strings.Contains(text, target.Mask) && got.Token != secret {
			t.Fatalf("with %q the secret goes to %s:%d as %s", text, got.Host, got.Port, got.User)
		}
	})
}

// TestWhereNobodyIsSpokenWithIsRefusedWhereItIsWritten: a host of a cloud's keys is refused when a connection is saved.
func TestWhereNobodyIsSpokenWithIsRefusedWhereItIsWritten(t *testing.T) {
	for dsn, refused := range map[string]bool{"ada:turnip@169.254.169.254:443/DB?account=acme": true,
		"ada:turnip@metadata.google.internal:443/DB?account=acme": true, "ada:turnip@acme.eu/DB": false} {
		if err := (dsnReader{}).Validate(dsn); errors.Is(err, egress.ErrRefused) != refused || !refused && err != nil {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}
