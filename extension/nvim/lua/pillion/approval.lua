-- Pending approval requests, proposals and questions. They never take the focus; only an explicit key or command
-- answers them.
local compat = require("pillion.compat")
local config = require("pillion.config")
local log = require("pillion.log")
local sessions = require("pillion.session")

---@class pillion.Ask
---@field id any JSON-RPC id of the request
---@field kind "permission"|"review"|"form"
---@field session pillion.Session
---@field title string
---@field call table the tool call that needs approval
---@field options table[] ACP permission options
---@field schema? table JSON Schema of a form
---@field state "open"|"answered"|"gone"
---@field answer? string the decision, as shown to the person
---@field accepted? boolean answered with an option that allows
---@field since number when it appeared, in milliseconds of review_keys.now
---@field armed? string optionId whose key was pressed once and must be pressed again
---@field review? pillion.Review
---@field entry pillion.Entry
---@field reply pillion.Reply

local M = {}

---@type pillion.Ask[]
M.open = {}

local function changed(ask)
  if ask.session.view then
    ask.session.view:changed(ask.entry)
  end
  ask.session:status()
end

local function settle(ask, state, answer)
  ask.state, ask.answer = state, answer
  for i, a in ipairs(M.open) do
    if a == ask then
      table.remove(M.open, i)
      break
    end
  end
  if ask.review then
    ask.review:close()
  end
  changed(ask)
  compat.user_event("PillionDecided", { session = ask.session.id, answer = answer })
end

local function begin(ask)
  ask.state, ask.since = "open", require("pillion.review_keys").now()
  table.insert(M.open, ask)
  ask.entry = ask.session:add({ kind = "ask", ask = ask })
  ask.session:status()
  compat.user_event(ask.kind == "review" and "PillionReview" or "PillionPermission", { session = ask.session.id, title = ask.title })
end

-- Reports whether the cursor is in the chat, where the question is shown.
local function chat_in_front(ask)
  local view = ask.session.view
  return view ~= nil and view:visible()
end

local function announce(ask, words)
  if config.options.notify and not chat_in_front(ask) then
    log.tell("info", words)
  end
end

-- Shows a permission request in a session: a proposal as a review, anything else as a question.
---@param session pillion.Session
---@param p pillion.RequestPermissionRequest
---@param reply pillion.Reply
---@param id any of the request
---@return pillion.Ask
function M.request(session, p, reply, id)
  local meta = p.toolCall._meta and p.toolCall._meta.pillion or {}
  local ask = {
    id = id,
    kind = meta.changeSet and "review" or "permission",
    session = session,
    title = p.toolCall.title or "Permission",
    call = p.toolCall,
    meta = meta,
    options = p.options or {},
    reply = reply,
  }
  begin(ask)
  if ask.kind == "review" then
    ask.review = require("pillion.review").start(ask)
    announce(ask, ask.review:headline() .. " · :Pillion review")
  else
    announce(ask, ask.title .. " · :Pillion accept, :Pillion reject or :Pillion answer")
  end
  changed(ask)
  return ask
end

---@param p pillion.RequestPermissionRequest
---@param reply pillion.Reply
---@param id any of the request
function M.permission(p, reply, id)
  local session = sessions.by_id[p.sessionId]
  if not session then
    return reply(nil, { code = -32602, message = "unknown session" })
  end
  local meta = p.toolCall._meta and p.toolCall._meta.pillion or {}
  if meta.changeSet and config.options.follow then
    for _, o in ipairs(p.options or {}) do
      if o.kind == "allow_once" then
        return reply({ outcome = { outcome = "selected", optionId = o.optionId } })
      end
    end
  end
  M.request(session, p, reply, id)
end

---@param p pillion.CreateElicitationRequest
---@param reply pillion.Reply
---@param id any of the request
function M.form(p, reply, id)
  local session = sessions.by_id[p.sessionId]
  if not session or p.mode ~= "form" then
    return reply({ action = "cancel" })
  end
  local ask = {
    id = id,
    kind = "form",
    session = session,
    title = p.message or "A question",
    call = { toolCallId = p.toolCallId },
    options = {},
    schema = p.requestedSchema or {},
    reply = reply,
  }
  begin(ask)
  announce(ask, ask.title .. " · :Pillion answer")
end

-- Closes a request that the sidecar has cancelled: its turn was stopped, or the program that asked over MCP withdrew its call.
---@param ask pillion.Ask
function M.cancel(ask)
  if ask.state == "open" then
    ask.reply(nil, { code = -32800, message = "cancelled" })
    settle(ask, "gone", "Not decided: the request was withdrawn.")
  end
end

---@param id any of the request
function M.cancelled(id)
  for _, ask in ipairs({ unpack(M.open) }) do
    if ask.id == id then
      M.cancel(ask)
    end
  end
end

-- Returns the option of a request with an id or a kind, or nil.
---@param ask pillion.Ask
---@param id string optionId or kind
---@return table?
function M.option(ask, id)
  for _, o in ipairs(ask.options) do
    if o.optionId == id or o.kind == id then
      return o
    end
  end
end

-- Answers a permission or a change set with one of its options.
---@param ask pillion.Ask
---@param option table
---@param meta? table `_meta.pillion` of the outcome: decisions, a comment
---@param words? string
function M.choose(ask, option, meta, words)
  if ask.state ~= "open" then
    return
  end
  ask.reply({ outcome = { outcome = "selected", optionId = option.optionId, _meta = meta and { pillion = meta } or nil } })
  local comment = meta and meta.comment
  ask.accepted = option.kind ~= "reject_once" and option.kind ~= "reject_always"
  settle(ask, "answered", words or (option.name .. (comment and comment ~= "" and (": " .. comment) or "")))
end

-- Answers with an option whose key was pressed. A key that was typed before the question could be read is ignored,
-- and an option that also allows later requests needs its key twice.
---@param ask pillion.Ask
---@param option table
function M.by_key(ask, option)
  if ask.state ~= "open" or require("pillion.review_keys").too_early(ask.since) then
    return
  end
  if option.kind == "allow_always" and ask.armed ~= option.optionId then
    ask.armed = option.optionId
    return vim.api.nvim_echo({ { "Press the same number again: " .. option.name, "PillionAsk" } }, false, {})
  end
  M.choose(ask, option)
end

-- Allows or rejects this request only.
---@param ask pillion.Ask
---@param kind "allow_once"|"reject_once"
---@param comment? string
---@return boolean
function M.decide(ask, kind, comment)
  local option = M.option(ask, kind)
  if not option then
    return false
  end
  M.choose(ask, option, comment and comment ~= "" and { comment = comment } or nil)
  return true
end

---@param ask pillion.Ask
function M.dismiss(ask)
  if ask.kind == "form" then
    ask.reply({ action = "decline" })
    settle(ask, "answered", "Not answered.")
  else
    M.decide(ask, "reject_once")
  end
end

-- Returns the oldest question; questions of the current session come first.
---@param kinds? table<string, boolean>
---@return pillion.Ask?
function M.first(kinds)
  local other
  for _, ask in ipairs(M.open) do
    if not kinds or kinds[ask.kind] then
      if ask.session == sessions.current then
        return ask
      end
      other = other or ask
    end
  end
  return other
end

local function choices(property)
  local out = {}
  local list = property.oneOf or (property.items and (property.items.anyOf or property.items.oneOf))
  for _, o in ipairs(list or {}) do
    out[#out + 1] = { value = o.const, name = o.title or o.const }
  end
  for _, v in ipairs(property.enum or (property.items and property.items.enum) or {}) do
    out[#out + 1] = { value = v, name = tostring(v) }
  end
  if property.type == "boolean" then
    out = { { value = true, name = "Yes" }, { value = false, name = "No" } }
  end
  return out
end

-- Asks for a form's fields one after the other. If one is left unanswered, the form stays open for later.
local function fill(ask)
  local names = vim.tbl_keys(ask.schema.properties or {})
  table.sort(names)
  local content, said = {}, {}
  local function field(i)
    if ask.state ~= "open" then
      return
    end
    local name = names[i]
    if not name then
      ask.reply({ action = "accept", content = next(content) and content or compat.object() })
      return settle(ask, "answered", table.concat(said, ", "))
    end
    local base = name:match("^(.*)%-other$")
    if base and content[base] ~= nil then
      return field(i + 1) -- own words are asked for only if no option was chosen
    end
    local property = ask.schema.properties[name]
    local prompt = property.description or property.title or name
    local list = choices(property)
    local own = ask.schema.properties[name .. "-other"] ~= nil
    local function take(value, words)
      content[name] = value
      said[#said + 1] = words
      field(i + 1)
    end
    if #list == 0 then
      return vim.ui.input({ prompt = prompt .. " " }, function(words)
        if not words then
          return
        elseif words == "" then
          return field(i + 1)
        end
        local number = (property.type == "number" or property.type == "integer") and tonumber(words)
        take(number or words, words)
      end)
    end
    if own then
      list[#list + 1] = { name = "Something else…", other = true }
    end
    if property.type == "array" then
      list[#list + 1] = { name = "Done", finish = true }
    end
    local picked, names_picked = {}, {}
    local function pick()
      vim.ui.select(list, {
        prompt = prompt,
        format_item = function(o)
          return (vim.tbl_contains(picked, o.value) and "[x] " or "") .. o.name
        end,
      }, function(o)
        if not o then
          return
        elseif o.other then
          return field(i + 1)
        elseif o.finish then
          return take(picked, table.concat(names_picked, ", "))
        elseif property.type == "array" then
          picked[#picked + 1] = o.value
          names_picked[#names_picked + 1] = o.name
          return pick()
        end
        take(o.value, o.name)
      end)
    end
    pick()
  end
  field(1)
end

-- Lets the person pick an answer. Leaving the picker decides nothing.
---@param ask pillion.Ask
function M.pick(ask)
  if ask.kind == "form" then
    return fill(ask)
  end
  vim.ui.select(ask.options, {
    prompt = ask.title,
    format_item = function(o)
      return o.name
    end,
  }, function(option)
    if option then
      M.choose(ask, option)
    end
  end)
end

-- Says for a person why an approved change was not applied; nil if the call failed for another reason. The text of
-- the call is written for the model.
---@param call table
---@return string?
function M.reason(call)
  local err = type(call.rawOutput) == "table" and call.rawOutput.error
  if type(err) ~= "table" then
    return nil
  end
  local names = {}
  for _, c in ipairs(call.content or {}) do
    if c.type == "diff" then
      names[#names + 1] = require("pillion.paths").short(c.path)
    end
  end
  local what = #names == 1 and names[1] or #names > 1 and "one of " .. table.concat(names, ", ") or "the file"
  if err.kind == "stale" then
    return "Not applied: " .. what .. " has changed in the same lines since; nothing was written"
  elseif err.kind == "exists" then
    return "Not applied: " .. what .. " exists by now; nothing was written"
  elseif err.kind == "rejected" then
    return "Rejected; nothing was written"
  end
end

-- Corrects the text of an answered request if its change could not be applied.
---@param session pillion.Session
---@param call table
function M.not_applied(session, call)
  local reason = M.reason(call)
  for _, e in ipairs(session.entries) do
    local ask = e.ask
    if ask and ask.kind == "review" and ask.state == "answered" and ask.accepted and ask.call.toolCallId == call.toolCallId and reason then
      ask.answer = reason .. "."
      changed(ask)
      log.tell("warn", reason)
    end
  end
end

-- Closes every open request after the sidecar has ended.
function M.lost()
  for _, ask in ipairs({ unpack(M.open) }) do
    settle(ask, "gone", "Not decided: the sidecar ended.")
  end
end

return M
