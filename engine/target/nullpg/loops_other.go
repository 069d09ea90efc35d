//go:build !linux

package nullpg

import "net"

// loops are event loops; there are none on this system.
type loops struct{}

func (*loops) take(*Server, net.Conn) bool { return false }
func (*loops) end()                        {}
