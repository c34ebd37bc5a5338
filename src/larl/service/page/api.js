// Requests to the service.

const TIMEOUT = 20_000; // milliseconds

// A response with an error status.
export class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// Return the JSON of a response, null if it has no content; throw ApiError, or TypeError without a response.
export async function request(path, { method = "GET", body, signal } = {}) {
  const headers = { "X-Larl-Page": "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const timeout = AbortSignal.timeout(TIMEOUT);
  const response = await fetch(path, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: "same-origin",
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  });
  if (response.status === 204) return null;
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, content.detail || `the service answered ${response.status}`);
  return content;
}

export const studyPath = (study) => `v1/studies/${encodeURIComponent(study)}`;
// The unit is a parameter: browsers drop "." and ".." from paths, even if they are escaped.
export const unitOverviewPath = (study, unit) => `${studyPath(study)}/unit-overview?unit=${encodeURIComponent(unit)}`;

// Addresses of views.
export const studyLink = (study) => `#/study/${encodeURIComponent(study)}`;
export const unitLink = (study, unit) => `${studyLink(study)}/unit/${encodeURIComponent(unit)}`;
