package engine

import "fmt"

// Kind is the kind of an operation. Reads and writes are told apart by it.
type Kind uint8

// The operation kinds, in the order in which pages and tables list them.
const (
	KindPointLookup Kind = iota
	KindRangeScan
	KindInsert
	KindUpdate
	KindDelete
	KindGenericSQL
	KindTransaction
	// NumKinds bounds arrays that are indexed by kind.
	NumKinds
)

var kindNames = [NumKinds]string{"POINT_LOOKUP", "RANGE_SCAN", "INSERT", "UPDATE", "DELETE", "GENERIC_SQL",
	"TRANSACTION"}

func (k Kind) String() string {
	if k < NumKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Read reports whether the kind only reads.
func (k Kind) Read() bool { return k == KindPointLookup || k == KindRangeScan }

// Write reports whether the kind is counted as a write.
func (k Kind) Write() bool { return k == KindInsert || k == KindUpdate || k == KindDelete }

// Kinds lists every kind.
func Kinds() []Kind {
	all := make([]Kind, NumKinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// ParseKind returns the kind of that name.
func ParseKind(name string) (Kind, error) {
	for i, n := range kindNames {
		if n == name {
			return Kind(i), nil
		}
	}
	return 0, fmt.Errorf("unknown operation kind %q: one of %v", name, kindNames)
}

// MarshalText writes the kind's name; it makes kinds usable as JSON map keys.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name.
func (k *Kind) UnmarshalText(b []byte) (err error) {
	*k, err = ParseKind(string(b))
	return err
}
