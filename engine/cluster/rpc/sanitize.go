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
	maxName    = 512      // characters of an id, a name, a status or a version
	maxPlace   = 4 << 10  // characters of a name of a part, or where it is
	maxText    = 16 << 10 // characters of a sentence; what is longer is cut
	maxDetails = 64 << 10 // bytes of the details of a line of a log
	maxListed  = 1000     // errors, problems and kinds of a message
	maxNumber  = 1e12     // of a measured figure, and the least is as far below zero
	maxSeconds = 1e9
	// No time is before or after these years.
	minYear, maxYear = 1970, 9000
)

// sentences are the fields that users read, which may have lines. All other texts name something.
var sentences = map[protoreflect.Name]bool{"message": true, "hint": true, "reason": true, "refusal": true,
	"error_message": true, "problems": true}

// long are the lists that are bounded elsewhere, or by the size of a message.
var long = map[protoreflect.Name]bool{"parts": true, "aside": true, "workers": true, "counts": true}

// places are the names that only ways to parts are made of, and that are compared.
var places = map[protoreflect.Name]bool{"artifact_url": true, "artifact_checksum": true, "work_id": true}

// Sanitize takes from what a node says what would be obeyed rather than shown, cuts sentences that are too long, and
// refuses names, numbers and times that cannot be: its error says which field has them.
func Sanitize(m protoreflect.Message) (err error) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			err = sanitizeMap(f, v.Map())
		case f.IsList():
			err = sanitizeList(f, v.List())
		default:
			var mended protoreflect.Value
			if mended, err = sanitizeValue(f, v); err == nil && mended.IsValid() {
				m.Set(f, mended)
			}
		}
		return err == nil
	})
	return err
}

func sanitizeMap(f protoreflect.FieldDescriptor, all protoreflect.Map) (err error) {
	if all.Len() > maxListed {
		return tooMany(f, all.Len())
	}
	all.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		var mended protoreflect.Value
		if err = checkName(f, k.String()); err == nil {
			mended, err = sanitizeValue(f.MapValue(), v)
		}
		if err == nil && mended.IsValid() {
			all.Set(k, mended)
		}
		return err == nil
	})
	return err
}

func sanitizeList(f protoreflect.FieldDescriptor, all protoreflect.List) error {
	if f.Kind() != protoreflect.MessageKind && f.Kind() != protoreflect.StringKind {
		return nil
	}
	if all.Len() > maxListed && !long[f.Name()] {
		return tooMany(f, all.Len())
	}
	for i := range all.Len() {
		mended, err := sanitizeValue(f, all.Get(i))
		if err != nil {
			return err
		}
		if mended.IsValid() {
			all.Set(i, mended)
		}
	}
	return nil
}

// sanitizeValue looks at one value. What it returns is to take its place, and is not valid where it may stay.
func sanitizeValue(f protoreflect.FieldDescriptor, v protoreflect.Value) (mended protoreflect.Value, err error) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		if t, ok := v.Message().Interface().(*timestamppb.Timestamp); ok {
			if y := t.AsTime().Year(); t.CheckValid() != nil || y < minYear || y > maxYear {
				return mended, fmt.Errorf("the node says %s, which is no time that can be", nameOf(f))
			}
			return mended, nil
		}
		return mended, Sanitize(v.Message())
	case protoreflect.DoubleKind:
		n, most := v.Float(), float64(maxNumber)
		if strings.HasSuffix(string(f.Name()), "_seconds") {
			most = maxSeconds
		}
		if math.IsNaN(n) || math.Abs(n) > most {
			return mended, fmt.Errorf("the node says %s %g, which is no figure that can be measured", nameOf(f), n)
		}
	case protoreflect.StringKind:
		if !sentences[f.Name()] {
			return mended, checkName(f, v.String())
		}
		text := v.String()
		if len(text) > maxText {
			text = textsafe.Shorten(text[:min(len(text), utf8.UTFMax*maxText)], maxText)
		}
		if text = textsafe.Multiline(text); text != v.String() {
			return protoreflect.ValueOfString(text), nil
		}
	case protoreflect.BytesKind:
		if b := v.Bytes(); len(b) > maxDetails || !json.Valid(b) {
			return protoreflect.ValueOfBytes(fmt.Appendf(nil, `{"left_out_bytes": %d}`, len(b))), nil
		}
	}
	return mended, nil
}

func checkName(f protoreflect.FieldDescriptor, name string) error {
	most := maxName
	if places[f.Name()] {
		most = maxPlace
	}
	if n := utf8.RuneCountInString(name); n > most {
		return fmt.Errorf("the node says %s of %d characters; %d are the most", nameOf(f), n, most)
	}
	if strings.ContainsFunc(name, textsafe.IsControl) {
		return fmt.Errorf("the node says %s %q, which has characters that are not shown", nameOf(f), name)
	}
	return nil
}

func tooMany(f protoreflect.FieldDescriptor, n int) error {
	return fmt.Errorf("the node says %s with %d entries; %d are the most", nameOf(f), n, maxListed)
}

// nameOf is a field as the protocol names it: Hello.version.
func nameOf(f protoreflect.FieldDescriptor) string {
	return fmt.Sprintf("%s.%s", f.Parent().Name(), f.Name())
}
