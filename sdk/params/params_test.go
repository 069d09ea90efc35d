package params_test

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/sdk/jsondoc"
	"github.com/loadstone-db/loadstone/sdk/params"
)

func TestReader(t *testing.T) {
	for doc, says := range map[string]string{
		`null`:                            "",
		`{}`:                              "",
		`{"n":5,"f":0.5,"b":true}`:        "",
		`{"n":null}`:                      "",
		`{"n":5.0}`:                       "",
		`[]`:                              "params must be an object",
		`{"n":11}`:                        "n must be a whole number from 1 to 10",
		`{"n":"5"}`:                       "n must be a whole number",
		`{"n":1.5}`:                       "n must be a whole number",
		`{"f":2}`:                         "f must be a number from 0 to 1",
		`{"f":"x"}`:                       "f must be a number",
		`{"b":1}`:                         "b must be true or false",
		`{"t":1}`:                         "t must be a text",
		`{"c":"three"}`:                   `c is "three": one of one, two`,
		`{"c":1}`:                         "one of one, two",
		`{"in":{"n":0}}`:                  "in.n must be",
		`{"in":{"m":0}}`:                  `unknown parameter "in.m": one of n`,
		`{"in":3}`:                        "in must be an object",
		`{"m":0}`:                         `unknown parameter "m": one of n, f, b, t, c, in`,
		`{"n":0,"f":2}`:                   "n must be",
		`{"in":{"n":3},"c":"two","t":""}`: "",
	} {
		v, err := jsondoc.Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		r := params.Read(v)
		var (
			n int64
			f float64
			b bool
			s string
			c int
		)
		r.Int("n", 1, 10, &n)
		r.Float("f", 0, 1, &f)
		r.Bool("b", &b)
		r.Text("t", &s)
		r.Choice("c", []string{"one", "two"}, &c)
		in := r.Object("in")
		in.Int("n", 1, 10, &n)
		r.Join(in)
		if err := r.Done(); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, expected %q", doc, err, says)
		}
	}
}

func TestDefaultsStay(t *testing.T) {
	v, err := jsondoc.Parse([]byte(`{"b":null}`))
	if err != nil {
		t.Fatal(err)
	}
	r, n, b := params.Read(v), int64(7), true
	r.Int("n", 1, 10, &n)
	r.Bool("b", &b)
	if err := r.Done(); err != nil || n != 7 || !b {
		t.Errorf("n %d, b %v, %v", n, b, err)
	}
}
