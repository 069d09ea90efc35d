// The server side of RFC 6455, as far as the mock needs it.
import { createHash } from 'node:crypto';

/** accept answers the browser's handshake key. */
export function accept(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
}

/** frame builds one frame: opcode 1 is text, 8 closes. */
export function frame(opcode: number, data: Buffer): Buffer {
  const head =
    data.length < 126
      ? Buffer.from([0x80 | opcode, data.length])
      : data.length < 65536
        ? Buffer.from([0x80 | opcode, 126, data.length >> 8, data.length & 255])
        : Buffer.concat([
            Buffer.from([0x80 | opcode, 127]),
            (() => {
              const b = Buffer.alloc(8);
              b.writeBigUInt64BE(BigInt(data.length));
              return b;
            })(),
          ]);
  return Buffer.concat([head, data]);
}
