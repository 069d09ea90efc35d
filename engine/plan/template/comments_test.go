package template

import (
	"strings"
	"testing"
)

const commented = `name: x # postgres://bench:s3cret@db/shop
target:
  # connection: {driver: postgres, dsn: "postgres://bench:s3cr@t@db.example.com:5432/shop"}
  # dsn: host=db user=bench password=s3cret sslmode=require
  # dsn: "host=db password='s3 cret' user=bench"
  # PGPASSWORD: s3cret
  # bench:s3cret@account/db/schema?warehouse=w
  # api_key = "s3cret"
  connection: playground	# was //u:s3cret@h
  table_name: orders
workload:
  plugin: sql
  params:
    statements:
      - sql: |
          SELECT 1 # password=kept
          # postgres://u:kept@h
      - sql: "SELECT ' # token=kept'"
# see https://example.com/docs:8080/a and ask bob: me@example.com at 10:30
`

func TestSecretsInCommentsAreMasked(t *testing.T) {
	got := string(MaskComments([]byte(commented)))
	if strings.Contains(got, "s3c") || strings.Contains(got, "cret") {
		t.Errorf("a secret is left:\n%s", got)
	}
	if n := strings.Count(got, "kept"); n != 3 {
		t.Errorf("%d of 3 values are as they were:\n%s", n, got)
	}
	for _, kept := range []string{"postgres://bench:***@db/shop", "host=db user=bench password=*** sslmode=require",
		"bench:***@account/db/schema?warehouse=w",
		"# see https://example.com/docs:8080/a and ask bob: me@example.com at 10:30\n",
		"connection: playground\t# was //u:***@h"} {
		if !strings.Contains(got, kept) {
			t.Errorf("%q is not in\n%s", kept, got)
		}
	}
	if again := string(MaskComments([]byte(got))); again != got {
		t.Errorf("twice changes it again:\n%s", again)
	}
}

func TestADocumentThatCannotBeReadIsLeft(t *testing.T) {
	for _, text := range []string{"", "name: x", "# password=a\n- [", "a: {b: # password=a"} {
		if got := string(MaskComments([]byte(text))); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// FuzzMaskComments: no value of a document changes, and its size stays bounded.
func FuzzMaskComments(f *testing.F) {
	f.Add([]byte(commented))
	f.Add([]byte("a: 'x # token=b'\nb: |\n  # pwd: c\n#p:q@r"))
	f.Fuzz(func(t *testing.T, source []byte) {
		before, err := read(source)
		if err != nil {
			t.Skip()
		}
		masked := MaskComments(source)
		if masked == nil {
			return
		}
		after, err := read(masked)
		if err != nil {
			t.Fatalf("%q cannot be read any more: %v", masked, err)
		}
		if !sameTree(before, after) {
			t.Errorf("%q became %q", source, masked)
		}
	})
}
