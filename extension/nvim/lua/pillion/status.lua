-- The state of Pillion in one line, for a statusline and for the chat's own windows.
local M = {}

local function option_name(session, id)
  local o = session:option(id)
  if not o then
    return nil
  end
  for _, x in ipairs(o.options or {}) do
    if x.value == o.currentValue then
      return x.name
    end
  end
  return o.currentValue
end

local function waiting(session)
  local n = 0
  for _, a in ipairs(require("pillion.approval").open) do
    if a.session == session then
      n = n + 1
    end
  end
  return n
end

---@param session pillion.Session
---@return string
local function state(session)
  local process = require("pillion.process")
  local asks = waiting(session)
  if process.state == "failed" then
    return "not running"
  elseif process.state == "starting" then
    return "starting"
  elseif asks > 0 then
    return asks == 1 and "waits for you" or asks .. " questions for you"
  elseif session:busy() then
    return "working"
  end
  return "ready"
end

local function share(session)
  local u = session.usage
  if not u or not u.size or u.size == 0 then
    return nil
  end
  local words = ("%d%% of context"):format(math.floor(100 * u.used / u.size + 0.5))
  if u.cost and u.cost.amount and u.cost.amount > 0 then
    words = words .. (" · $%.2f"):format(u.cost.amount)
  end
  return words
end

local function escape(s)
  return (s:gsub("%%", "%%%%"))
end

local function of(buf)
  local v = require("pillion.chat_buffer").by_buf[buf]
  return v and v.session
end

-- The line above the conversation: session and state.
---@param buf integer
---@return string
function M.winbar(buf)
  local s = of(buf)
  if not s then
    return ""
  end
  local st = state(s)
  local group = st == "ready" and "PillionHint" or st == "working" and "PillionRunning" or st == "not running" and "PillionError" or "PillionAsk"
  return ("%%#PillionHead# %s %%#%s#%%=%s %%*"):format(escape(s.title or "Pillion"), group, escape(st))
end

-- The same without colours, for a Neovim without winbars.
---@param buf integer
---@return string
function M.plain(buf)
  local s = of(buf)
  return s and (" " .. (s.title or "Pillion") .. " · " .. state(s)) or ""
end

-- The line below the input: model, mode, context, queued prompts.
---@param buf integer
---@return string
function M.line(buf)
  local s = of(buf)
  if not s then
    return ""
  end
  local parts = {}
  for _, id in ipairs({ "mode", "model" }) do
    parts[#parts + 1] = option_name(s, id)
  end
  local effort = s:option("thought_level")
  if effort and effort.currentValue ~= "default" then
    parts[#parts + 1] = "thinking " .. tostring(effort.currentValue)
  end
  local asks = s:option("permission")
  if asks and asks.currentValue == "auto" then
    parts[#parts + 1] = "auto"
  end
  parts[#parts + 1] = share(s)
  local queued, steering = 0, 0
  for _, item in ipairs(s.queue) do
    if item.steer then
      steering = steering + 1
    else
      queued = queued + 1
    end
  end
  if queued > 0 then
    parts[#parts + 1] = queued .. " queued"
  end
  if steering > 0 then
    parts[#parts + 1] = steering .. " for this turn"
  end
  if require("pillion.config").options.follow then
    parts[#parts + 1] = "follow"
  elseif require("pillion.config").options.draft then
    parts[#parts + 1] = "draft"
  end
  return " " .. escape(table.concat(parts, " · "))
end

-- The text for a statusline: short, and empty if no turn runs.
---@return string
function M.text()
  local session = require("pillion.session").current
  if not session or (session.state == "new" and not session:busy()) then
    return ""
  end
  local words = "Pillion: " .. state(session)
  local r = require("pillion.approval").first({ review = true })
  if r and r.review then
    words = words .. (" (%d of %d hunks open)"):format(r.review:left(), #r.review.hunks)
  end
  return words
end

-- Called when something that it shows may have changed.
---@param v? pillion.ChatBuffer
function M.changed(v)
  vim.cmd("redrawstatus!")
  if v then
    require("pillion.chat_input").attached(v)
  end
end

return M
