package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/oidc"
)

var updateDocument = flag.Bool("update", false, "write docs/openapi.json anew")

// TestTheDocumentInTheDocsIsTheServers: the page's types are made from the file, so
// what the server answers otherwise is first said there. `make api` writes it.
func TestTheDocumentInTheDocsIsTheServers(t *testing.T) {
	t.Parallel()
	const path = "../docs/openapi.json"
	b := start(t, func(o *server.Options) {
		o.PreflightSample, o.Version, o.Matrices = run.Preflight{}, "unreleased", &lineup{}
		o.Tables, o.OIDC = noTables{}, &oidc.Options{Issuer: "https://login.example"}
		o.NodeAccess, o.Scaling = &gatekeeper{}, demand{}
	})
	served := b.do("GET", "/api/openapi.json", nil).want(t, 200).body
	var want bytes.Buffer
	if err := json.Indent(&want, served, "", " "); err != nil {
		t.Fatal(err)
	}
	want.WriteByte('\n')
	if *updateDocument {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want.Bytes()) {
		t.Errorf("%s is not what the server answers: run make api", path)
	}
}
