package jsondoc

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// same compares our reading with encoding/json's.
func same(t interface{ Errorf(string, ...any) }, doc []byte) {
	v, err := Parse(doc)
	if err != nil {
		t.Errorf("%s: %v", doc, err)
		return
	}
	var want, got any
	if err := json.Unmarshal(doc, &want); err != nil {
		t.Errorf("%s: encoding/json says %v", doc, err)
		return
	}
	if err := json.Unmarshal(v.Append(nil), &got); err != nil {
		t.Errorf("%s: written as %s: %v", doc, v.Append(nil), err)
		return
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s: read as %s", doc, v.Append(nil))
	}
}

func TestParseAgreesWithEncodingJSON(t *testing.T) {
	for _, doc := range []string{`null`, ` true `, `-0.5e+10`, `"a\"\\\/\b\f\n\r\té😀\ud83d"`, `[]`, `{}`,
		`[1,[2,{"a":[]}],"x"]`, `{"a":1,"a":2,"":null}`, "\"\u2028é\x7f\""} {
		same(t, []byte(doc))
	}
}

func TestMalformed(t *testing.T) {
	for _, doc := range []string{``, `nul`, `{`, `[1,]`, `{"a":}`, `{"a" 1}`, `{a:1}`, `01`, `-`, `1.`, `1e`, `.5`, `"`,
		`"\x"`, `"\u12"`, "\"\n\"", "\"\xff\"", `1 2`, `[1 2]`, `tru`, `+1`,
		string(bytes.Repeat([]byte("["), 100))} {
		if _, err := Parse([]byte(doc)); err == nil {
			t.Errorf("%q was accepted", doc)
		}
	}
}

func TestAccessors(t *testing.T) {
	v, err := Parse(
		[]byte(`{"i":9223372036854775807,"s":"-12","f":2.5,"e":2e3,"b":true,"n":null,"a":["x",1],"o":{"k":"v"}}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := v.Get("i").Int(); !ok || n != math.MaxInt64 {
		t.Errorf("i is %d, %v", n, ok)
	}
	if n, ok := v.Get("s").Int(); !ok || n != -12 {
		t.Errorf("s is %d, %v", n, ok)
	}
	if n, ok := v.Get("e").Int(); !ok || n != 2000 {
		t.Errorf("e is %d, %v", n, ok)
	}
	if _, ok := v.Get("f").Int(); ok {
		t.Error("2.5 is an integer")
	}
	if f, ok := v.Get("f").Float(); !ok || f != 2.5 {
		t.Errorf("f is %v, %v", f, ok)
	}
	if !v.Get("b").Bool() || !v.Get("n").IsNull() || !v.Has("n") || v.Has("x") || v.Get("o").Get("k").Str() != "v" {
		t.Error("members read wrong")
	}
	if got := v.Get("a").Strings(); !reflect.DeepEqual(got, []string{"x", "1"}) {
		t.Errorf("a is %v", got)
	}
	// What is missing reads as nothing, at any depth.
	missing := v.Get("x").Get("y").At(3)
	if missing.Str() != "" || missing.Len() != 0 || missing.Kind() != Null || missing.Names() != nil ||
		missing.Strings() != nil {
		t.Error("a missing value is something")
	}
}

func TestWriterIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		n := rapid.Int64().Draw(t, "n")
		f := rapid.Float64().Draw(t, "f")
		var w Writer
		w.Object().Key(s).Array().Str(s).Int(n).Float(f).Bool(true).Null().EndArray().Key("o").Object().EndObject().Key("l").
			Strs([]string{s, s}).EndObject()
		var got map[string]any
		if err := json.Unmarshal(w.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", w.Bytes(), err)
		}
		v, err := Parse(w.Bytes())
		if err != nil {
			t.Fatalf("%s: %v", w.Bytes(), err)
		}
		if m, ok := v.Get(s).At(1).Int(); s != "o" && s != "l" && (!ok || m != n) {
			t.Fatalf("%d was read as %d", n, m)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",null,true,{"b":-2.5e3}]}`))
	f.Add([]byte(`"\ud83d\ude00"`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := Parse(doc)
		if err != nil {
			return
		}
		// Numbers beyond a double are ours to take, and encoding/json's to refuse.
		var want any
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("%q was accepted, encoding/json says %v", doc, err)
		}
		again, err := Parse(v.Append(nil))
		if err != nil || !bytes.Equal(again.Append(nil), v.Append(nil)) {
			t.Fatalf("%q was written as %q: %v", doc, v.Append(nil), err)
		}
	})
}
