// The weather at a place: an example of a custom tool. Copy it to .pillion/tools/ or .opencode/tools/ of a project, or
// to ~/.config/pillion/tools/ for all of them; the file's name is the tool's.
//
// WEATHER_URL and WEATHER_KEY in the environment choose another service that answers like wttr.in. Tools get no keys unless
// ~/.config/pillion/pillion.jsonc hands them on: "environment": { "tool": ["WEATHER_KEY"] }
import { tool } from "@opencode-ai/plugin"

interface Day {
  date: string
  maxtempC: string
  mintempC: string
  maxtempF: string
  mintempF: string
}

interface Answer {
  current_condition: { temp_C: string; temp_F: string; weatherDesc: { value: string }[] }[]
  weather: Day[]
}

// Made at the first call: loading a tool should neither cost anything nor fail because a variable is missing.
let service: { url: string; headers: Record<string, string> } | undefined

function connect() {
  if (service) return service
  const url = process.env.WEATHER_URL ?? "https://wttr.in"
  if (!/^https?:\/\/[^/]/.test(url)) throw new Error(`WEATHER_URL is ${JSON.stringify(url)}, which is not an http or https address`)
  const key = process.env.WEATHER_KEY
  service = { url: url.replace(/\/+$/, ""), headers: key ? { authorization: `Bearer ${key}` } : {} }
  return service
}

export default tool({
  description: "Tells the weather at a place now and for up to three days.",
  args: {
    place: tool.schema.string().trim().min(2, "Name a town, or give latitude,longitude.").describe("a town, or latitude,longitude"),
    unit: tool.schema.enum(["celsius", "fahrenheit"], { error: "The unit is celsius or fahrenheit." }).default("celsius"),
    days: tool.schema.number().int().min(1, "Ask for one day at least.").max(3, "The forecast has three days.").default(1),
  },
  async execute({ place, unit, days }, context) {
    const { url, headers } = connect()
    const address = `${url}/${encodeURIComponent(place)}?format=j1`
    await context.ask({ permission: "webfetch", patterns: [address], always: [`${url}/*`], metadata: { place } })

    context.metadata({ title: `Weather in ${place}`, metadata: { state: "asking" } })
    const response = await fetch(address, { headers, signal: context.abort })
    if (!response.ok) throw new Error(`${new URL(url).host} answers ${response.status} for ${place}`)
    const { current_condition: [now], weather } = (await response.json()) as Answer
    context.metadata({ title: `Weather in ${place}`, metadata: { state: "done", days: weather.length } })

    const warm = unit === "fahrenheit"
    const degrees = (c: string, f: string) => (warm ? `${f} °F` : `${c} °C`)
    const lines = [`Now: ${now.weatherDesc[0].value}, ${degrees(now.temp_C, now.temp_F)}`]
    for (const d of weather.slice(0, days)) lines.push(`${d.date}: ${degrees(d.mintempC, d.mintempF)} to ${degrees(d.maxtempC, d.maxtempF)}`)
    return { title: `Weather in ${place}`, output: lines.join("\n"), metadata: { place, unit } }
  },
})
