package keyring

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

func ring(t testing.TB) *Keyring {
	t.Helper()
	t.Setenv(KeyEnv, "")
	r, err := Open(filepath.Join(t.TempDir(), "keys", "key"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealOpens(t *testing.T) {
	r := ring(t)
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		context := rapid.String().Draw(t, "context")
		sealed := r.Seal(plain, context)
		got, err := r.Open(sealed, context)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("got %q, %v", got, err)
		}
		if _, err := r.Open(sealed, context+"x"); !errors.Is(err, ErrTampered) {
			t.Fatalf("another context: %v", err)
		}
		raw, _ := base64.StdEncoding.DecodeString(sealed)
		i := rapid.IntRange(0, len(raw)-1).Draw(t, "byte")
		raw[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := r.Open(base64.StdEncoding.EncodeToString(raw), context); err == nil {
			t.Fatalf("a changed byte %d was not noticed", i)
		}
	})
}

func TestKeyFile(t *testing.T) {
	t.Setenv(KeyEnv, "")
	path := filepath.Join(t.TempDir(), "key")
	first, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
	sealed := first.Seal([]byte("secret"), "c")
	second, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := second.Open(sealed, "c"); err != nil || string(got) != "secret" {
		t.Errorf("after opening the file again: %q, %v", got, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("a key file that everybody can read was taken")
	}
	for _, text := range []string{"", "not base64!", "c2hvcnQ="} {
		bad := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(bad); err == nil {
			t.Errorf("key file %q was taken", text)
		}
	}
}

func TestEnvironmentAndReplacement(t *testing.T) {
	one := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	two := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32))
	open := func(text string) *Keyring {
		t.Setenv(KeyEnv, text)
		r, err := Open("/nowhere/key")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	old := open(one).Seal([]byte("secret"), "c")
	both := open(two + "," + one)
	if got, err := both.Open(old, "c"); err != nil || string(got) != "secret" {
		t.Errorf("the old key in second place: %q, %v", got, err)
	}
	if _, err := open(one).Open(both.Seal([]byte("new"), "c"), "c"); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("the first key does not seal: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	r := ring(f)
	f.Add(r.Seal([]byte("secret"), "c"))
	f.Add("AQ==")
	f.Fuzz(func(t *testing.T, sealed string) {
		if plain, err := r.Open(sealed, "other"); err == nil {
			t.Fatalf("opened %q for a context it was not sealed for", plain)
		}
	})
}
