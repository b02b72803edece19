/** The webview's page; `place` (letters and digits) is the key of its stored prompts. It may load its own script,
 * style and font, and data: images, and nothing else. */
export function panelHtml(o: { script: string; style: string; source: string; nonce: string; place: string }): string {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${o.nonce}'`,
    `style-src ${o.source}`,
    `font-src ${o.source}`,
    "img-src data:",
    "connect-src 'none'",
    "form-action 'none'",
    "base-uri 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Pillion</title>
<link rel="stylesheet" href="${o.style}">
</head>
<body>
<div id="root" data-place="${o.place}"></div>
<script nonce="${o.nonce}" src="${o.script}"></script>
</body>
</html>`;
}
