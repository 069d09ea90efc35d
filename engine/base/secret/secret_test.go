package secret_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/base/secret"
)

const text = "hunter2-and-more"

// form has a secret wherever one can stand.
type form struct {
	Password secret.Secret            `json:"password"`
	List     []secret.Secret          `json:"list"`
	Pointer  *secret.Secret           `json:"pointer"`
	Named    map[string]secret.Secret `json:"named"`
	Keyed    map[secret.Secret]int    `json:"keyed"`
	Any      any                      `json:"any"`
	hidden   secret.Secret
}

func newForm() form {
	s := secret.New(text)
	return form{s, []secret.Secret{s}, &s, map[string]secret.Secret{"a": s}, map[secret.Secret]int{s: 1}, s, s}
}

func TestNothingButRevealShowsASecret(t *testing.T) {
	t.Parallel()
	f := newForm()
	var shown bytes.Buffer
	for _, v := range []any{f, &f, f.Password, f.Pointer, f.List, f.Named, errors.Join(fmt.Errorf("opening %v", f.Password))} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%p"} {
			fmt.Fprintf(&shown, verb+"\n", v)
		}
		fmt.Fprintln(&shown, v)
		zero := zerolog.New(&shown)
		zero.Info().Interface("v", v).Any("any", v).Fields(map[string]any{"field": v}).Msgf("%+v", v)
		slog.New(slog.NewTextHandler(&shown, nil)).Info("text", "v", v)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("json", "v", v)
		if err := json.NewEncoder(&shown).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	zero := zerolog.New(&shown)
	zero.Info().Stringer("s", f.Password).Str("str", f.Password.String()).Send()
	for _, leak := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text)} {
		if at := strings.Index(shown.String(), leak); at >= 0 {
			t.Errorf("shown: …%s", shown.String()[max(0, at-100):at+len(leak)])
		}
	}
	if got := fmt.Sprintf("%v %+v %#v %s", f.Password, f.Password, f.Password, f.Password); got != "*** *** *** ***" {
		t.Errorf("formatted: %s", got)
	}
	if got := f.Password.Reveal(); got != text {
		t.Errorf("revealed: %q", got)
	}
}

func TestJSONReadsASecretAsAString(t *testing.T) {
	t.Parallel()
	var f form
	if err := json.Unmarshal([]byte(`{"password": "`+text+`", "pointer": null}`), &f); err != nil {
		t.Fatal(err)
	}
	if f.Password != secret.New(text) || f.Password == secret.New("other") || f.Pointer != nil {
		t.Errorf("read: %q", f.Password.Reveal())
	}
	if err := json.Unmarshal([]byte(`{"password": 5}`), &f); err == nil {
		t.Error("a number is taken for a secret")
	}
	if err := json.Unmarshal([]byte(`{"password": ""}`), &f); err != nil || !f.Password.IsZero() ||
		f.Password.Reveal() != "" || f.Password.String() != "" {
		t.Errorf("an empty text: %v, %q", err, f.Password.Reveal())
	}
}
