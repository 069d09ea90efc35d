package s3store

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/egress/egresstest"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/objects/objectstest"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]Address{
		"s3://bench":                  {Bucket: "bench", HostStyle: true},
		"s3://bench/":                 {Bucket: "bench", HostStyle: true},
		"s3://bench/a/b/?region=eu-1": {Bucket: "bench", Prefix: "a/b", Region: "eu-1", HostStyle: true},
		"s3://bench?path_style=true":  {Bucket: "bench"},
		"s3://bench/a?endpoint=https://minio.local:9000&region=x": {Bucket: "bench", Prefix: "a", Region: "x",
			Endpoint: "https://minio.local:9000"},
		"s3://bench?endpoint=http://h&path_style=false": {Bucket: "bench", Endpoint: "http://h", HostStyle: true},
	} {
		if got, err := ParseAddress(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	const secret = "wJalrXUtnFEMI"
	for _, text := range []string{"s3://", "s3:///x", "s3://AKIA:" + secret + "@bench/x", "s3://" + secret + "@bench/x",
		"s3://bench/../x", "s3://bench/a//b", "s3://bench/a/./b", "s3://bench/.hidden", "s3://bench/a b",
		"s3://bench/%2e%2e/x",
		"s3://bench/a%2f..%2fb", "s3://Bench", "s3://b", "s3://ben..ch", "s3://bench#x", "s3://bench?secret=" + secret,
		"s3://bench?region=a&region=b", "s3://bench?region=%0a", "s3://bench?endpoint=ftp://x", "s3://bench?endpoint=x",
		"s3://bench?endpoint=https://u:" + secret + "@h", "s3://bench?endpoint=https://h/?key=" + secret,
		"s3://bench?path_style=1",
		"s3://bench/" + strings.Repeat("x", 600), "s3://bench/\x00", "s3://bench:" + secret} {
		_, err := ParseAddress(text)
		e := engine.AsError(err)
		if err == nil || e.Code != engine.CodeInvalid || e.Hint == "" {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error()+e.Hint, secret) {
			t.Errorf("%q: the error repeats what may be a secret: %v", text, err)
		}
	}
}

// TestWhatCannotKeepResultsIsRefusedAtStart, in words, and without the secret.
func TestWhatCannotKeepResultsIsRefusedAtStart(t *testing.T) {
	each(t, func(t *testing.T, server s3test.Server) {
		proxy := s3test.NewProxy(t, server)
		const wrongSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
		for name, c := range map[string]struct {
			change func(*s3test.Server)
			fault  s3test.Fault
			says   string
			real   bool // a stand-in computes no signatures
		}{
			"another bucket": {change: func(s *s3test.Server) { s.Bucket = "nowhere" }, says: "the bucket does not exist"},
			"another key": {change: func(s *s3test.Server) { s.Access = "somebody" },
				says: "the access key is not known there"},
			"another secret": {change: func(s *s3test.Server) { s.Secret = wrongSecret },
				says: "the secret key does not belong to the access key", real: true},
			"no keys": {change: func(s *s3test.Server) { s.Access, s.Secret = "", "" }, says: "no credentials"},
			"nobody there": {change: func(s *s3test.Server) { s.Endpoint = "http://127.0.0.1:1" },
				says: "does not answer: connection refused"},
			"read only":   {fault: refuseMethod("PUT"), says: "Writing a test object failed"},
			"no reading":  {fault: refuseMethod("GET"), says: "Reading a test object failed"},
			"no deleting": {fault: refuseMethod("DELETE"), says: "Deleting a test object failed"},
		} {
			if c.real && server.Access == "standin" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				at := proxy.Server
				if c.change != nil {
					c.change(&at)
				}
				proxy.Set(c.fault)
				at.Environment(t)
				address, err := ParseAddress(at.Address("some"))
				if err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				opts := options(t)
				opts.Log = zerolog.New(&log)
				_, err = Open(t.Context(), address, opts)
				e := engine.AsError(err)
				if err == nil || !strings.Contains(e.Message, c.says) || e.Hint == "" {
					t.Fatalf("%v; %+v", err, e)
				}
				for _, secret := range []string{wrongSecret, server.Secret} {
					if all := err.Error() + e.Message + e.Hint + log.String(); strings.Contains(all, secret) {
						t.Errorf("the secret is shown: %s", all)
					}
				}
			})
		}
	})
}

func refuseMethod(method string) s3test.Fault {
	return s3test.After(0, s3test.MatchMethods(method), s3test.AccessDenied)
}

// TestTheTestObjectOfTheStartIsRemoved, and other objects are left alone.
func TestTheTestObjectOfTheStartIsRemoved(t *testing.T) {
	standIn := s3test.NewStandIn(t, "results")
	s := at(t, standIn.Server, "some", options(t))
	objectstest.Put(t, s, "run", "part.parquet", []byte("content"))
	_ = at(t, standIn.Server, "some", options(t))
	if keys := standIn.Keys(); len(keys) != 1 || keys[0] != "some/run/part.parquet" {
		t.Errorf("objects %v", keys)
	}
	if where := s.Location("run"); where != "s3://results/some/run" {
		t.Errorf("where: %s", where)
	}
	if text := s.String(); text != "s3://results/some at "+standIn.Endpoint {
		t.Errorf("address: %s", text)
	}
}

// TestAServerWithoutConditionalWritesIsUsed, and what is there is still not overwritten.
func TestAServerWithoutConditionalWritesIsUsed(t *testing.T) {
	for name, fault := range map[string]s3test.Fault{"ignored": s3test.IgnoreConditions, "refused": s3test.NotImplemented} {
		t.Run(name, func(t *testing.T) {
			proxy := s3test.NewProxy(t, s3test.NewStandIn(t, "results").Server)
			proxy.Set(fault)
			var log bytes.Buffer
			opts := options(t)
			opts.Log = zerolog.New(&log)
			s := at(t, proxy.Server, "", opts)
			if !strings.Contains(log.String(), "does not know conditional writes") {
				t.Errorf("the log does not say so: %s", log.String())
			}
			objectstest.Put(t, s, "run", "part.parquet", []byte("first"))
			a, path := objectstest.File(t, "run", "part.parquet", []byte("second"))
			if err := s.Put(context.Background(), a, record.LocalFile(path)); err == nil {
				t.Error("it was overwritten")
			}
			if got := string(objectstest.Read(t, s, "run", "part.parquet")); got != "first" {
				t.Errorf("%q", got)
			}
		})
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("s3://bench/a?endpoint=https://minio.local:9000&region=x")
	f.Add("s3://a:b@bench")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text)
		if err != nil {
			return
		}
		for _, element := range strings.Split(a.Prefix, "/") {
			if element == "." || element == ".." || a.Prefix != "" && element == "" {
				t.Fatalf("%q: prefix %q", text, a.Prefix)
			}
		}
		if u, err := url.Parse(a.Endpoint); err != nil || u.User != nil {
			t.Fatalf("%q: endpoint %q", text, a.Endpoint)
		}
	})
}

// TestAnEndpointThatLeadsToTheLink is refused, by its address or by what its name leads to.
func TestAnEndpointThatLeadsToTheLink(t *testing.T) {
	server := s3test.NewStandIn(t, "results").Server
	server.Environment(t)
	open := func(endpoint string) error {
		opts := options(t)
		opts.Attempts = 2
		at := server
		at.Endpoint = endpoint
		address, err := ParseAddress(at.Address("some"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), address, opts)
		return err
	}
	if err := open("http://169.254.169.254"); !engine.HasCode(err, engine.CodeInvalid) ||
		!strings.Contains(err.Error(), "connections to it are refused") {
		t.Errorf("an address: %v", err)
	}
	egresstest.StubDNS(t, egresstest.Metadata)
	if err := open("http://s3.example"); !errors.Is(err, egress.ErrRefused) {
		t.Errorf("a name: %v", err)
	} else if e := engine.AsError(err); !strings.Contains(e.Message, "address of the link") {
		t.Errorf("in words: %s", e.Message)
	}
}
