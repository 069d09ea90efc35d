// This part looks at what a node says before anybody believes it: a node is a program on another machine, and
// what it says is kept with runs, and shown on pages and terminals.

package rpc

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// What a node may say at most.
const (
	mostName    = 512      // characters of an id, a name, a status or a version
	mostPlace   = 4 << 10  // characters of a name of a part, or where it is
	mostText    = 16 << 10 // characters of a sentence; what is longer is cut
	mostDetails = 64 << 10 // bytes of the details of a line of a log
	mostListed  = 1000     // errors, problems and kinds of a message
	mostNumber  = 1e12     // of a measured figure, and the least is as far below zero
	mostSeconds = 1e9
	// No time is before or after these years.
	firstYear, lastYear = 1970, 9000
)

// sentences are the fields that users read, which may have lines. All other texts name something.
var sentences = map[protoreflect.Name]bool{"message": true, "hint": true, "reason": true, "refusal": true,
	"error_message": true, "problems": true}

// long are the lists that are bounded elsewhere, or by the size of a message.
var long = map[protoreflect.Name]bool{"parts": true, "aside": true, "workers": true, "counts": true}

// places are the names that only ways to parts are made of, and that are compared.
var places = map[protoreflect.Name]bool{"artifact_url": true, "artifact_checksum": true, "work_id": true}

// Mend takes from what a node says what would be obeyed rather than shown, cuts sentences that are too long, and
// refuses names, numbers and times that cannot be: its error says which field has them.
func Mend(m protoreflect.Message) (err error) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			err = mendMap(f, v.Map())
		case f.IsList():
			err = mendList(f, v.List())
		default:
			var mended protoreflect.Value
			if mended, err = mendOne(f, v); err == nil && mended.IsValid() {
				m.Set(f, mended)
			}
		}
		return err == nil
	})
	return err
}

func mendMap(f protoreflect.FieldDescriptor, all protoreflect.Map) (err error) {
	if all.Len() > mostListed {
		return tooMany(f, all.Len())
	}
	all.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		var mended protoreflect.Value
		if err = checkName(f, k.String()); err == nil {
			mended, err = mendOne(f.MapValue(), v)
		}
		if err == nil && mended.IsValid() {
			all.Set(k, mended)
		}
		return err == nil
	})
	return err
}

func mendList(f protoreflect.FieldDescriptor, all protoreflect.List) error {
	if f.Kind() != protoreflect.MessageKind && f.Kind() != protoreflect.StringKind {
		return nil
	}
	if all.Len() > mostListed && !long[f.Name()] {
		return tooMany(f, all.Len())
	}
	for i := range all.Len() {
		mended, err := mendOne(f, all.Get(i))
		if err != nil {
			return err
		}
		if mended.IsValid() {
			all.Set(i, mended)
		}
	}
	return nil
}

// mendOne looks at one value. What it returns is to take its place, and is not valid where it may stay.
func mendOne(f protoreflect.FieldDescriptor, v protoreflect.Value) (mended protoreflect.Value, err error) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		if t, ok := v.Message().Interface().(*timestamppb.Timestamp); ok {
			if y := t.AsTime().Year(); t.CheckValid() != nil || y < firstYear || y > lastYear {
				return mended, fmt.Errorf("the node says %s, which is no time that can be", nameOf(f))
			}
			return mended, nil
		}
		return mended, Mend(v.Message())
	case protoreflect.DoubleKind:
		n, most := v.Float(), float64(mostNumber)
		if strings.HasSuffix(string(f.Name()), "_seconds") {
			most = mostSeconds
		}
		if math.IsNaN(n) || math.Abs(n) > most {
			return mended, fmt.Errorf("the node says %s %g, which is no figure that can be measured", nameOf(f), n)
		}
	case protoreflect.StringKind:
		if !sentences[f.Name()] {
			return mended, checkName(f, v.String())
		}
		text := v.String()
		if len(text) > mostText {
			text = textsafe.Shorten(text[:min(len(text), utf8.UTFMax*mostText)], mostText)
		}
		if text = textsafe.Lines(text); text != v.String() {
			return protoreflect.ValueOfString(text), nil
		}
	case protoreflect.BytesKind:
		if b := v.Bytes(); len(b) > mostDetails || !json.Valid(b) {
			return protoreflect.ValueOfBytes(fmt.Appendf(nil, `{"left_out_bytes": %d}`, len(b))), nil
		}
	}
	return mended, nil
}

func checkName(f protoreflect.FieldDescriptor, name string) error {
	most := mostName
	if places[f.Name()] {
		most = mostPlace
	}
	if n := utf8.RuneCountInString(name); n > most {
		return fmt.Errorf("the node says %s of %d characters; %d are the most", nameOf(f), n, most)
	}
	if strings.ContainsFunc(name, textsafe.Obeyed) {
		return fmt.Errorf("the node says %s %q, which has characters that are not shown", nameOf(f), name)
	}
	return nil
}

func tooMany(f protoreflect.FieldDescriptor, n int) error {
	return fmt.Errorf("the node says %s with %d entries; %d are the most", nameOf(f), n, mostListed)
}

// nameOf is a field as the protocol names it: Hello.version.
func nameOf(f protoreflect.FieldDescriptor) string {
	return fmt.Sprintf("%s.%s", f.Parent().Name(), f.Name())
}
