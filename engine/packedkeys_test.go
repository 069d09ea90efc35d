package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// packedValue reads a value as Add was given it.
func packedValue(k *PackedKeys, column, row int) any {
	t, _ := k.Type(column)
	switch t {
	case TypeText, TypeBytes:
		return string(k.AppendText(nil, column, row))
	case TypeF64:
		return math.Float64frombits(k.Number(column, row))
	}
	return int64(k.Number(column, row))
}

// TestPackedKeysKeepWhatTheyAreGiven packs random keys of all types, in less room than they need, too.
func TestPackedKeysKeepWhatTheyAreGiven(t *testing.T) {
	names, types := []string{"n", "f", "u", "s"}, []ValueType{TypeI64, TypeF64, TypeText, TypeText}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "n")
		odd := rapid.IntRange(-1, 250).Draw(t, "odd") // the row whose UUID is none
		most := rapid.IntRange(1, 300).Draw(t, "most")
		limit := rapid.IntRange(200, 20_000).Draw(t, "limit")
		p := NewKeyPacker(names, types, most, limit)
		var given [][]any
		for i := range n {
			uuid := fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i*7)
			if i == odd {
				uuid = "NONE"
			}
			row := []any{int64(i) - 50, rapid.Float64().Draw(t, "f"), uuid, rapid.StringN(0, 20, -1).Draw(t, "s")}
			given = append(given, row)
			if err := p.Add([]any{fmt.Sprint(row[0]), fmt.Sprintf("%.17g", row[1]), row[2], row[3]}); err != nil {
				t.Fatal(err)
			}
		}
		keys := p.Keys()
		if keys.Len() > most || keys.Bytes() > limit && keys.Len() > 1 || n > 0 && keys.Len() == 0 {
			t.Fatalf("%d keys of %d bytes, %d of %d were asked for", keys.Len(), keys.Bytes(), most, limit)
		}
		text, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		again := &PackedKeys{}
		if err := json.Unmarshal(text, again); err != nil {
			t.Fatal(err)
		}
		// Spread: each so-manieth key is there.
		every := 1
		for (n+every-1)/every > keys.Len() {
			every *= 2
		}
		for row := range again.Len() {
			for c := range names {
				if got, want := packedValue(again, c, row), given[row*every][c]; got != want {
					t.Fatalf("key %d (of every %d), column %s: %v, and was %v", row, every, names[c], got, want)
				}
			}
		}
	})
}

// TestPackedKeysThatDoNotFitTogetherAreRefused reads what a store or a peer may have spoilt.
func TestPackedKeysThatDoNotFitTogetherAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"count":2,"columns":[{"name":"a","type":"i64","data":"AAAAAAAAAAA="}]}`,
		`{"count":1,"columns":[{"name":"a","type":"text","data":"YWI=","ends":"AQAAAA=="}]}`,
		`{"count":2,"columns":[{"name":"a","type":"text","data":"YWI=","ends":"AgAAAAEAAAA="}]}`,
		`{"count":-1,"columns":[{"name":"a","type":"bool","data":""}]}`,
	} {
		if err := json.Unmarshal([]byte(text), &PackedKeys{}); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

// TestAKeyWithANullIsLeftOut counts those that nothing finds.
func TestAKeyWithANullIsLeftOut(t *testing.T) {
	p := NewKeyPacker([]string{"a", "b"}, []ValueType{TypeI64, TypeBytes}, 10, 1000)
	for _, row := range [][]any{{"1", "00ff"}, {"2", nil}, {nil, ""}, {"3", ""}} {
		if err := p.Add(row); err != nil {
			t.Fatal(err)
		}
	}
	if k := p.Keys(); k.Len() != 2 || p.Unusable() != 2 || !slices.Equal(k.AppendText(nil, 1, 0), []byte{0, 255}) ||
		k.Number(0, 1) != 3 {
		t.Errorf("%+v, %d without a key", k, p.Unusable())
	}
}

// TestAKeyThatNoOperationCarriesIsLeftOut alone: the others stay, in their columns, and no error has its value.
func TestAKeyThatNoOperationCarriesIsLeftOut(t *testing.T) {
	p := NewKeyPacker([]string{"s", "a", "b"}, []ValueType{TypeText, TypeI64, TypeBytes}, 10, 1000)
	for _, row := range [][]any{{"one", "1", "01"}, {"big", "99999999999999999999", "02"}, {"x", "no", "03"},
		{"odd", "4", "no hex"}, {"two", "2", "04"}} {
		if err := p.Add(row); err != nil {
			t.Fatal(err)
		}
	}
	k := p.Keys()
	if k.Len() != 2 || p.Unusable() != 3 || k.Number(1, 0) != 1 || k.Number(1, 1) != 2 ||
		string(k.AppendText(nil, 0, 1)) != "two" || !slices.Equal(k.AppendText(nil, 2, 1), []byte{4}) {
		t.Errorf("%+v, %d are left out", k, p.Unusable())
	}
	if err := p.Add([]any{"few"}); err == nil {
		t.Error("a key without two of its columns was taken")
	}
}
