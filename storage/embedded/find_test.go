package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestLinksOnThePathLeadToTheirInstall: initdb finds postgres beside its own file, so that one by a link is not
// the one of the folder with the link.
func TestLinksOnThePathLeadToTheirInstall(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program := func(folder, name, version string) string {
		t.Helper()
		dir := filepath.Join(root, folder)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		text := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", name, version)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(folder, name, to string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(root, folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	postgres, initdb := program("98", "postgres", "98.1"), program("98", "initdb", "98.1")
	link("both", "postgres", postgres)
	link("both", "initdb", initdb)
	link("one", "initdb", initdb)
	link("chain", "initdb", filepath.Join(root, "one", "initdb"))
	program("mixed", "postgres", "99.1")
	link("mixed", "initdb", initdb)
	link("foreign", "postgres", postgres)
	link("foreign", "initdb", program("wrapper", "pg_wrapper", "1"))
	link("lone", "postgres", program("alone", "postgres", "99.2"))
	link("server", "postgres", postgres)
	program("server", "initdb", "98.1")
	for folder, want := range map[string]string{"98": "98", "both": "98", "one": "98", "chain": "98", "mixed": "98",
		"foreign": "98", "lone": "", "server": "98"} {
		t.Setenv("PATH", filepath.Join(root, folder))
		for _, env := range []string{"", filepath.Join(root, folder)} {
			t.Setenv(BinEnv, env)
			in, err := findMajor(0)
			if want == "" {
				if filepath.Dir(in.dir) == root {
					t.Errorf("%s, %s=%q: %+v, where no initdb is", folder, BinEnv, env, in)
				}
				continue
			}
			if err != nil || in.dir != filepath.Join(root, want) || in.major != 98 {
				t.Errorf("%s, %s=%q: %+v, %v", folder, BinEnv, env, in, err)
			}
		}
	}
}
