package main

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"pgregory.net/rapid"
)

// opener hands documents to a module as they are; the host would only send good ones.
type opener struct {
	alloc, open api.Function
	memory      api.Memory
}

func openers(t *testing.T) map[string]opener {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { r.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	_, err := r.NewHostModuleBuilder("ls").NewFunctionBuilder().WithFunc(func(int32, uint32, uint32) {}).Export("log").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]opener{}
	for language, file := range built(t).files {
		if language == "go" {
			continue // package jsondoc has tests of its own
		}
		m, err := r.InstantiateWithConfig(ctx, file,
			wazero.NewModuleConfig().WithName(language).WithStartFunctions("_initialize"))
		if err != nil {
			t.Fatal(err)
		}
		all[language] = opener{m.ExportedFunction("ls_alloc"), m.ExportedFunction("ls_open"), m.Memory()}
	}
	return all
}

// try returns whether the module took the document; a trap is an error.
func (o opener) try(document []byte) (bool, error) {
	ctx := context.Background()
	at, err := o.alloc.Call(ctx, uint64(max(len(document), 1)))
	if err != nil {
		return false, err
	}
	o.memory.Write(uint32(at[0]), document)
	result, err := o.open.Call(ctx, at[0], uint64(len(document)))
	return err == nil && uint32(result[0]) == 0, err
}

// TestMalformedDocuments cuts a document off at every byte and changes some: no
// SDK may trap on it, and none may take a part for the whole.
func TestMalformedDocuments(t *testing.T) {
	all := openers(t)
	file, err := os.ReadFile("../golden/skewed.json")
	if err != nil {
		t.Fatal(err)
	}
	var c golden
	if err := json.Unmarshal(file, &c); err != nil {
		t.Fatal(err)
	}
	for language, o := range all {
		if taken, err := o.try(c.Document); !taken || err != nil {
			t.Fatalf("%s does not take the document: %v", language, err)
		}
		for n := range c.Document {
			if taken, err := o.try(c.Document[:n]); taken || err != nil {
				t.Errorf("%s with the first %d bytes: taken is %v, %v", language, n, taken, err)
			}
		}
		for name, document := range map[string]string{"deep": deep('[', 10_000), "deep objects": deep('{', 10_000),
			"text after it":     "{} {}",
			"control character": "{\"a\":\"\x01\"}", "half an escape": `{"a":"\u12"}`, "unknown escape": `{"a":"\q"}`,
			"no value": `{"a"}`, "a comma too many": `[1,]`, "a number": `-`} {
			if taken, err := o.try([]byte(document)); taken || err != nil {
				t.Errorf("%s, %s: taken is %v, %v", language, name, taken, err)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		document := append([]byte(nil), c.Document...)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			document[rapid.IntRange(0, len(document)-1).Draw(t, "at")] = rapid.SampledFrom([]byte(`{}[]",:\0919eE+-.tfnu `)).
				Draw(t, "byte")
		}
		for language, o := range all {
			if _, err := o.try(document); err != nil {
				t.Fatalf("%s traps on %s: %v", language, document, err)
			}
		}
	})
}

func deep(bracket byte, n int) string {
	b := make([]byte, 0, 5*n)
	for range n {
		if b = append(b, bracket); bracket == '{' {
			b = append(b, `"a":`...)
		}
	}
	return string(b)
}
