package rpc_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/loadstone-db/loadstone/engine/cluster/rpc"
)

// TestWhatIsMendedInAMapTakesItsPlace, as in a list and a field. No message has such a map yet.
func TestWhatIsMendedInAMapTakesItsPlace(t *testing.T) {
	t.Parallel()
	field := func(name string, n int32, of descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: proto.String(name), Number: proto.Int32(n), Type: of.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	}
	all := field("details", 1, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE)
	all.Label, all.TypeName = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum(), proto.String(".M.DetailsEntry")
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: proto.String("m.proto"),
		Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M"),
			Field: []*descriptorpb.FieldDescriptorProto{all},
			NestedType: []*descriptorpb.DescriptorProto{{Name: proto.String("DetailsEntry"),
				Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
				Field: []*descriptorpb.FieldDescriptorProto{
					field("key", 1, descriptorpb.FieldDescriptorProto_TYPE_STRING),
					field("value", 2, descriptorpb.FieldDescriptorProto_TYPE_BYTES)}}}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(file.Messages().ByName("M"))
	f := m.Descriptor().Fields().ByName("details")
	details := m.Mutable(f).Map()
	details.Set(protoreflect.ValueOfString("is").MapKey(), protoreflect.ValueOfBytes([]byte(`{"a":1}`)))
	details.Set(protoreflect.ValueOfString("is none").MapKey(), protoreflect.ValueOfBytes([]byte("\x1b[31m")))
	if err := rpc.Sanitize(m); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"is": `{"a":1}`, "is none": `{"left_out_bytes": 5}`} {
		if got := m.Get(f).Map().Get(protoreflect.ValueOfString(key).MapKey()).Bytes(); string(got) != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}
