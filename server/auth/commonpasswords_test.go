package auth

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
)

// TestCommonPasswordsAreRefused: those of the list that are long enough, and what people make of the others.
func TestCommonPasswordsAreRefused(t *testing.T) {
	for _, common := range []string{
		"1qaz2wsx3edc", "leavemealone", "LeaveMeAlone", "q1w2e3r4t5y6", // of the list
		"Password2024!", "password123456", "P@ssw0rd1234", "123456password", "letmein-letmein", "sunshine!!!!!",
		"passwordpassword", "PasswordPassword1", "Superman-1985-", // of shorter ones
		"abcabcabcabc", "aaaaaaaaaaaaa", "198519851985", "12121212121212", // repeated
		"abcdefghijkl", "zyxwvutsrqpo", "123456789012", "0987654321098", "qwertyuiopas", "mnbvcxzlkjhg", // in a row
	} {
		if err := checkPassword("password", "ada", secret.New(common)); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%s is taken", common)
		}
	}
	for _, fine := range []string{"correct horse battery", "another horse battery", "wrong horse battery",
		"kx7-Tq2_vM9zR4", "hunters walk at dawn", "Übermorgen regnet es", "7f3a9c1e5b2d", "tea kettle passport"} {
		if err := checkPassword("password", "ada", secret.New(fine)); err != nil {
			t.Errorf("%s is refused: %v", fine, err)
		}
	}
}

// TestEachOfTheListIsRefused: whatever of the list is long enough to be chosen, in upper case and with a year behind it.
func TestEachOfTheListIsRefused(t *testing.T) {
	r, err := gzip.NewReader(bytes.NewReader(commonPasswords))
	if err != nil {
		t.Fatal(err)
	}
	var n, long int
	began := time.Now()
	for lines := bufio.NewScanner(r); lines.Scan(); n++ {
		p := lines.Text()
		if len(p) < minPassword {
			continue
		}
		if long++; long%10 != 0 {
			continue // reading the list takes its time
		}
		for _, p := range []string{p, strings.ToUpper(p)} {
			if !guessable(p) {
				t.Errorf("%s is taken", p)
			}
		}
	}
	t.Logf("%d passwords, %d of %d characters or more, %s", n, long, minPassword, time.Since(began))
	if n < 96_000 || long < 400 {
		t.Errorf("the list has %d passwords, %d of them long", n, long)
	}
	if len(commonPasswords) > 300_000 {
		t.Errorf("the list takes %d bytes", len(commonPasswords))
	}
}

func BenchmarkGuessable(b *testing.B) {
	for b.Loop() {
		guessable("correct horse battery")
	}
}
