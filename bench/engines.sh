#!/bin/bash
# Pairs of pgbench, io_uring and epoll: 16 and 64 connections, unix socket and TCP, steady and whole process, in about
# 15 minutes on a machine that is otherwise idle. It prints a Markdown table for each.
#
#	bench/engines.sh [ROUNDS [SECONDS]]
set -euo pipefail
cd "$(dirname "$0")"
[ -x ../bin/loadstone ] || make -C .. build
exec go run ./peers -rounds "${1:-7}" -seconds "${2:-8}" -warmup 1 -connections 16,64 -sockets unix,tcp \
	-io io_uring,events -peers pgbench
