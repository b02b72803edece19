-- The longer implementations of subcommands.
local config = require("pillion.config")
local log = require("pillion.log")
local paths = require("pillion.paths")
local process = require("pillion.process")
local sessions = require("pillion.session")

local M = {}

local function open_stored(id, cwd)
  local known = sessions.by_id[id]
  local s = sessions.stored(id, cwd, true)
  require("pillion.chat").open(false, s)
  if known and known.state == "ready" then
    return
  end
  s:open(function(err)
    if err then
      sessions.by_id[id] = nil
      s:note("error", err)
    end
  end)
end

local function list(all, callback)
  process.request("session/list", { cwd = not all and vim.fn.getcwd() or nil }, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    callback(r.sessions or {})
  end)
end

---@param all boolean
function M.sessions(all)
  list(all, function(found)
    if #found == 0 then
      return log.tell("info", "no stored sessions " .. (all and "yet" or "of this folder; :Pillion sessions all shows every folder's"))
    end
    vim.ui.select(found, {
      prompt = "Sessions",
      format_item = function(s)
        local time = (s.updatedAt or ""):gsub("T(%d%d:%d%d).*", " %1")
        return ("%s  %s%s"):format(time, s.title and s.title ~= "" and s.title or s.sessionId, all and ("  (" .. paths.short(s.cwd) .. ")") or "")
      end,
    }, function(s)
      if s then
        open_stored(s.sessionId, s.cwd)
      end
    end)
  end)
end

---@param id? string
function M.resume(id)
  list(false, function(found)
    for _, s in ipairs(found) do
      if not id or s.sessionId == id then
        return open_stored(s.sessionId, s.cwd)
      end
    end
    log.tell("info", id and ("no session " .. id .. " in this folder") or "no stored session of this folder")
  end)
end

---@param id string
---@param lead string
---@return string[]
function M.value_list(id, lead)
  local s = sessions.current
  local o = s and s:option(id)
  local out = {}
  for _, x in ipairs(o and o.options or {}) do
    if x.value:find(lead, 1, true) then
      out[#out + 1] = x.value
    end
  end
  return out
end

---@param id string
---@param value string
---@return boolean
function M.values(id, value)
  return vim.tbl_contains(M.value_list(id, ""), value)
end

---@param id string
---@param value? string
function M.option(id, value)
  local s = sessions.get()
  s:open(function(err)
    if err then
      return log.tell("error", err)
    end
    if value then
      return s:set_option(id, value)
    end
    local o = s:option(id)
    if not o then
      return log.tell("info", id == "thought_level" and "this model has no thinking levels" or ("this session has no option " .. id))
    end
    vim.ui.select(o.options, {
      prompt = o.name,
      format_item = function(x)
        return (x.value == o.currentValue and "● " or "  ") .. x.name .. (x.description and x.description ~= "" and ("  " .. x.description:gsub("\n.*", "")) or "")
      end,
    }, function(x)
      if x then
        s:set_option(id, x.value)
      end
    end)
  end)
end

---@param args string[]
---@param raw table
function M.add(args, raw)
  local context = require("pillion.context")
  local s = sessions.get()
  local added = {}
  if raw.range and raw.range > 0 then
    added[#added + 1] = context.range(require("pillion.selection").lines(vim.api.nvim_get_current_buf(), raw.line1, raw.line2))
  elseif #args == 0 then
    local buf = context.front()
    if not buf then
      return log.tell("info", "the current window shows no file to add")
    end
    added[#added + 1] = context.file(vim.api.nvim_buf_get_name(buf))
  end
  for _, a in ipairs(args) do
    if a:sub(1, 1) == "@" then
      local c = context.mention(a, s.cwd)
      if not c then
        log.tell("warn", "unknown mention " .. a)
      end
      added[#added + 1] = c
    else
      for _, f in ipairs(vim.fn.glob(vim.fn.expand(a), true, true)) do
        added[#added + 1] = context.file(vim.fn.fnamemodify(f, ":p"):gsub("/$", ""))
      end
    end
  end
  local names = {}
  for _, c in ipairs(added) do
    table.insert(s.attached, c)
    names[#names + 1] = c.name
  end
  s:status()
  if #names > 0 then
    log.tell("info", "added to the next prompt: " .. table.concat(names, ", "))
  end
end

local function prompt_line(item)
  return (sessions.content_text(item.prompt[1] or {}):gsub("\n.*", " …"))
end

-- Lists the queued prompts. The one that the person picks can be removed, edited, moved to the front or sent to the
-- running turn.
function M.queue()
  local s = sessions.get()
  s:call("_pillion/session/queue", {}, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    if #r.items == 0 then
      return log.tell("info", "the queue is empty")
    end
    vim.ui.select(r.items, { prompt = "Waiting prompts", format_item = prompt_line }, function(item)
      if not item then
        return
      end
      local verbs = { { "remove", "Remove it" }, { "steer", "Put it into the turn that runs" }, { "edit", "Change it" }, { "first", "Make it the next" } }
      vim.ui.select(verbs, {
        prompt = prompt_line(item),
        format_item = function(v)
          return v[2]
        end,
      }, function(v)
        if not v then
          return
        end
        local function change(params)
          s:call("_pillion/session/queue", params, function(e)
            if e then
              log.tell("error", e.message)
            end
          end)
        end
        if v[1] == "remove" then
          change({ remove = { item.id } })
        elseif v[1] == "steer" then
          change({ steer = item.id })
        elseif v[1] == "first" then
          change({ move = { id = item.id, before = r.items[1].id } })
        else
          vim.ui.input({ prompt = "Prompt: ", default = prompt_line(item) }, function(text)
            if text and text ~= "" then
              change({ edit = { id = item.id, prompt = { { type = "text", text = text } } } })
            end
          end)
        end
      end)
    end)
  end)
end

-- Copies the session and continues in the copy; the original stays as it is.
function M.fork()
  local s = sessions.get()
  s:call("_pillion/session/fork", {}, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    open_stored(r.sessionId, s.cwd)
  end)
end

-- Runs the sidecar's program with other arguments, in its environment.
---@param args string[]
---@param callback fun(code: integer, out: string, err: string)
local function program(args, callback)
  local cmd, missing = process.find()
  if not cmd then
    return callback(-1, "", missing or "")
  end
  local out, err = {}, {}
  local ok, why = pcall(vim.fn.jobstart, vim.list_extend(vim.deepcopy(cmd), args), {
    cwd = vim.fn.getcwd(),
    env = config.options.env,
    stdout_buffered = true,
    stderr_buffered = true,
    on_stdout = function(_, data)
      out = data
    end,
    on_stderr = function(_, data)
      err = data
    end,
    on_exit = function(_, code)
      callback(code, vim.trim(table.concat(out, "\n")), vim.trim(table.concat(err, "\n")))
    end,
  })
  if not ok then
    callback(-1, "", tostring(why))
  end
end

-- Trusts the configuration of the current folder's project, or revokes that. Before it trusts, the person sees what would be used.
---@param revoke boolean
function M.trust(revoke)
  local function done(code, out, err)
    log.tell(code == 0 and "info" or "error", code == 0 and out or err)
  end
  if config.options.trust ~= nil then
    return log.tell("warn", ("the option trust is %s, and it decides"):format(tostring(config.options.trust)))
  elseif revoke then
    return program({ "trust", "--revoke" }, done)
  end
  program({ "config", "check", "--json" }, function(_, out, err) -- it exits with 1 where a setting is wrong
    local ok, found = pcall(vim.json.decode, out)
    if not ok then
      return log.tell("error", err ~= "" and err or out)
    elseif found.trusted then
      return log.tell("info", "this folder is trusted; :Pillion trust revoke ends that")
    end
    local held = vim.tbl_map(function(h)
      return ("%s:%d %s: %s"):format(vim.fn.fnamemodify(h.file, ":."), h.line, h.setting, h.reason)
    end, found.held)
    if #held > 0 then
      log.tell("info", "held back until you trust this folder:\n" .. table.concat(held, "\n"))
    end
    vim.ui.select({ "Trust it", "Leave it as it is" }, {
      prompt = ("%s of %s would be used"):format(#held == 1 and "1 setting" or #held .. " settings", vim.fn.getcwd()),
    }, function(choice)
      if choice == "Trust it" then
        program({ "trust" }, done)
      end
    end)
  end)
end

-- Lists the permission rules that apply. If the person picks a grant, it is revoked.
function M.permissions()
  local s = sessions.get()
  s:call("_pillion/permission/list", {}, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    vim.ui.select(r.rules, {
      prompt = "Permission rules, the last that matches wins; choose a remembered one to forget it",
      format_item = function(x)
        return ("%-6s %s %s  (%s)"):format(x.action, x.permission, x.pattern, x.origin or "default")
      end,
    }, function(x)
      if not x then
        return
      elseif not x.id then
        return log.tell("info", "this rule comes from " .. (x.origin or "the defaults") .. " and is changed there")
      end
      s:call("_pillion/permission/revoke", { id = x.id }, function(e)
        log.tell(e and "error" or "info", e and e.message or "revoked")
      end)
    end)
  end)
end

return M
