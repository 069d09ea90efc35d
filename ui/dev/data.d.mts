export const plugins: { manifest: { parameters?: unknown } }[];
